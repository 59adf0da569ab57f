/** A server whose commits come from a replica: the database before it is served, and what comes while it is. */
import { join } from "node:path";
import { isFollower, type ServeConfig } from "../../config/config.ts";
import { StartError } from "../../config/start_error.ts";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import type { JournalRow } from "../../engine/mod.ts";
import { BrokenVersionError, RowsRefusedError } from "../../functions/host/mod.ts";
import { VersionError } from "../../functions/versions/mod.ts";
import { statIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import type { FollowerFigures } from "../../ops/replication/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";

export interface FollowingFeature extends Feature {
  /** How far behind this server is; `null` on one that has commits of its own. */
  readonly figures: (() => FollowerFigures & { readonly from: string }) | null;
  /** The same for administrators. */
  readonly told: (() => object) | null;
  /** Why what the commits are made with cannot be served here; `null`: it can. */
  readonly stuck: () => string | null;
}

/**
 * Brings the database to what a server is to begin with; does nothing without `--follow`. Throws a `StartError` for data that
 * are not a follower's, and when there is nothing to begin with.
 */
export async function bringFollowed(
  { dataDir, follow }: Pick<ServeConfig, "dataDir" | "follow">,
  { log, stopping = new AbortController().signal }: {
    readonly log: Log;
    /** Ends it: it throws then. */
    readonly stopping?: AbortSignal;
  },
): Promise<void> {
  if (follow === null) return;
  const { BringError, bringInProcess, placeText } = await import("../../ops/replication/mod.ts");
  const from = placeText(follow.from);
  const step = follow.promote ? "promote" : "begin";
  const isNew = await statIfThere(join(dataDir, archiveNames.database)) === null;
  if (isNew) log("info", "The newest state of the replica is fetched, which may take a while", { from });
  let brought;
  try {
    brought = await bringInProcess({ dataDir, target: follow.from, step, signal: stopping });
  } catch (error) {
    if (!(error instanceof BringError)) throw error;
    throw new StartError(`Cannot follow "${from}": ${error.message}`, { cause: error });
  }
  if (brought.kind === "own") {
    if (follow.promote) {
      return log("info", "The data are this server's own already: nothing is followed", { from });
    }
    throw new StartError(
      `The data in "${dataDir}" are a server's own, and following would replace them: name an empty folder with --data`,
      { code: "data_folder" },
    );
  }
  const { ts, snapshot, stale } = brought;
  if (stale !== null) {
    log("warn", "The replica cannot be reached: what is there from before is served", {
      code: "replication",
      reason: stale,
    });
  }
  const message = follow.promote
    ? "The server goes on with commits of its own"
    : "The server follows a replica, read only";
  log("info", message, { from, ts, ...(snapshot && { began: "with a snapshot" }) });
}

export async function startFollowing(
  context: FeatureContext,
  { cluster }: { readonly cluster: PostgresCluster | null },
): Promise<FollowingFeature> {
  const { config, host, log, renew } = context;
  const { dataDir, follow } = config;
  let reason: string | null = null;
  const stuck = () => reason;
  if (!isFollower(config)) return { figures: null, told: null, stuck };
  const { bringInProcess, Follower, LogGapError, placeText, ProcessLog } = await import(
    "../../ops/replication/mod.ts"
  );
  const followed = cluster !== null
    ? {
      from: cluster.place,
      log: cluster.openLog(),
      takeAnew: () => Promise.resolve(cluster.beginAnew()),
    }
    : follow === null
    ? null
    : {
      from: placeText(follow.from),
      log: new ProcessLog({ dataDir, target: follow.from, everyMs: follow.everyMs }),
      takeAnew: async (signal: AbortSignal) =>
        void await bringInProcess({ dataDir, target: follow.from, step: "renew", signal }),
    };
  if (followed === null) return { figures: null, told: null, stuck };
  const follower = new Follower<JournalRow>({
    log: followed.log,
    side: {
      position: () => host.reached,
      async apply(rows) {
        try {
          await host.applyRows(rows);
        } catch (error) {
          if (error instanceof VersionError || error instanceof BrokenVersionError) {
            // Nothing is served rather than what was before.
            reason = error.message;
            renew();
          }
          if (!(error instanceof RowsRefusedError) || !error.unfit) throw error;
          throw new LogGapError(error.message, { cause: error });
        }
      },
      async renew(reason, signal) {
        log("warn", "A newer snapshot is fetched", { reason });
        await followed.takeAnew(signal);
        renew();
      },
    },
    tell: log,
  });
  const figures = () => ({ from: followed.from, ...follower.figures });
  return {
    figures,
    stuck,
    told() {
      const { errors, ...known } = figures();
      const dated = errors.map(({ at, message }) => ({ at: new Date(at).toISOString(), message }));
      return { ...known, errors: dated };
    },
    start: () => follower.start(),
    stop: () => follower[Symbol.asyncDispose](),
  };
}
