/** Follows a replica or a cluster: prepares the database before it is served and applies new commits. */
import { locationText } from "../../kit/locations/object_store.ts";
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
  /** Lag of this server; `null` unless it follows. */
  readonly figures: (() => FollowerFigures & { readonly from: string }) | null;
  readonly status: (() => object) | null;
  /** Why this server cannot apply the commits of a new version; `null` if it can. */
  readonly stuck: () => string | null;
}

/** Restores or updates the database from `--follow`. Throws a `StartError` for other data or without a snapshot. */
export async function prepareFollower(
  { dataDir, follow }: Pick<ServeConfig, "dataDir" | "follow">,
  { log, stopping = new AbortController().signal }: {
    readonly log: Log;
    readonly stopping?: AbortSignal;
  },
): Promise<void> {
  if (follow === null) return;
  const { FollowerUpdateError, updateFollowerInProcess } = await import("../../ops/replication/mod.ts");
  const from = locationText(follow.from);
  const step = follow.promote ? "promote" : "begin";
  const isNew = await statIfThere(join(dataDir, archiveNames.database)) === null;
  if (isNew) log("info", "Downloading the newest state of the replica, which may take a while", { from });
  let update;
  try {
    update = await updateFollowerInProcess({ dataDir, target: follow.from, step, signal: stopping });
  } catch (error) {
    if (!(error instanceof FollowerUpdateError)) throw error;
    throw new StartError(`Cannot follow "${from}": ${error.message}`, { cause: error });
  }
  if (update.kind === "own") {
    if (follow.promote) {
      return log("info", "The data already belongs to this server; no longer following", { from });
    }
    throw new StartError(
      `The data in "${dataDir}" belongs to this server, and following would replace it. Pass an empty folder with --data`,
      { code: "data_folder" },
    );
  }
  const { ts, snapshot, stale } = update;
  if (stale !== null) {
    log("warn", "Replica unreachable: serving the existing data", {
      code: "replication",
      reason: stale,
    });
  }
  const message = follow.promote
    ? "The server continues with its own commits"
    : "The server follows a replica, read only";
  log("info", message, { from, ts, ...(snapshot && { began: "with a snapshot" }) });
}

export async function startFollowing(
  context: FeatureContext,
  { cluster }: { readonly cluster: PostgresCluster | null },
): Promise<FollowingFeature> {
  const { config, host: { rows }, log, requestReplacement } = context;
  const { dataDir, follow } = config;
  let reason: string | null = null;
  const stuck = () => reason;
  if (!isFollower(config) || rows === null) return { figures: null, status: null, stuck };
  const { updateFollowerInProcess, Follower, LogGapError, ProcessLog } = await import(
    "../../ops/replication/mod.ts"
  );
  const followed = cluster !== null
    ? {
      from: cluster.location,
      log: cluster.openLog(),
      resync: () => Promise.resolve(cluster.requireSnapshot()),
    }
    : follow === null
    ? null
    : {
      from: locationText(follow.from),
      log: new ProcessLog({ dataDir, target: follow.from, everyMs: follow.everyMs }),
      resync: async (signal: AbortSignal) =>
        void await updateFollowerInProcess({ dataDir, target: follow.from, step: "renew", signal }),
    };
  if (followed === null) return { figures: null, status: null, stuck };
  const follower = new Follower<JournalRow>({
    log: followed.log,
    side: {
      position: () => rows.reached,
      async apply(batch) {
        try {
          await rows.apply(batch);
        } catch (error) {
          if (error instanceof VersionError || error instanceof BrokenVersionError) {
            // Serving nothing is better than serving outdated code.
            reason = error.message;
            requestReplacement();
          }
          if (!(error instanceof RowsRefusedError) || !error.unfit) throw error;
          throw new LogGapError(error.message, { cause: error });
        }
      },
      async renew(reason, signal) {
        log("warn", "Downloading a newer snapshot", { reason });
        await followed.resync(signal);
        requestReplacement();
      },
    },
    logger: log,
  });
  const figures = () => ({ from: followed.from, ...follower.figures });
  return {
    figures,
    stuck,
    status() {
      const { errors, ...known } = figures();
      const dated = errors.map(({ at, message }) => ({ at: new Date(at).toISOString(), message }));
      return { ...known, errors: dated };
    },
    start: () => follower.start(),
    stop: () => follower[Symbol.asyncDispose](),
  };
}
