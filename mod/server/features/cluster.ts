/** Cluster membership of a server: role, status for administrators, and reads that are never older than what a client has seen. */
import { Hono } from "hono";
import type { ClusterFigures, PostgresCluster, ServedState } from "../../cluster/postgres/mod.ts";
import { clusterLimits } from "../../cluster/postgres/limits.ts";
import type { ServeConfig } from "../../config/config.ts";
import { StartError } from "../../config/start_error.ts";
import type { IsolateHost } from "../../functions/host/mod.ts";
import { type Clock, pause, steadyClock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import { type AdminEnv, adminGuard } from "../../ops/mod.ts";
import type { SyncFeature } from "./sync.ts";
import { secretText, useSecretText } from "../data/secret.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "./accounts.ts";
import { verifyWith } from "./admin.ts";
import { ClusterCode } from "./cluster_code.ts";
import type { FollowingFeature } from "./following.ts";
import type { MaintenanceFeature } from "./maintenance.ts";
import type { SchedulingFeature } from "./scheduling.ts";

/** Joins or creates the configured cluster; `null` without one. Throws a `StartError`. */
export async function joinCluster(
  { dataDir, cluster }: Pick<ServeConfig, "dataDir" | "cluster">,
  { address, log }: { readonly address: string; readonly log: Log },
): Promise<PostgresCluster | null> {
  if (cluster === null) return null;
  await ClusterCode.clear(dataDir);
  // Loaded on demand, because only clusters need the driver.
  const { ClusterError, PostgresCluster } = await import("../../cluster/postgres/mod.ts");
  try {
    return await PostgresCluster.join({
      ...cluster,
      dataDir,
      address,
      serviceKey: () => secretText(dataDir),
      useServiceKey: (text) => useSecretText(dataDir, text),
      log,
    });
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    throw new StartError(error.message, { cause: error });
  }
}

/** Prepares the database for the cluster and returns this server's role. Throws a `StartError`. */
export async function clusterRole(cluster: PostgresCluster): Promise<"leading" | "following"> {
  const { ClusterError } = await import("../../cluster/postgres/mod.ts");
  try {
    return await cluster.begin() === "leader" ? "leading" : "following";
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    throw new StartError(error.message, { cause: error });
  }
}

export interface ClusterFeature extends Feature {
  /** `null` outside a cluster. */
  readonly figures: (() => ClusterFigures) | null;
  /** Returns all members. Rejects while the database is unreachable. */
  readonly members: PostgresCluster["members"];
}

export interface ClusterParts {
  readonly cluster: PostgresCluster | null;
  readonly accounts: AccountsFeature;
  readonly following: Pick<FollowingFeature, "figures">;
  readonly maintenance: MaintenanceFeature;
  readonly sync: Pick<SyncFeature, "load">;
  /** Started after this feature. */
  readonly scheduling: Pick<SchedulingFeature, "endActions">;
}

export function startClustering(
  { host, requestReplacement }: FeatureContext,
  parts: ClusterParts,
): ClusterFeature {
  const { cluster, accounts: { authenticator }, following, maintenance, sync } = parts;
  const app = new Hono<AdminEnv>().use("*", adminGuard(verifyWith(authenticator)));
  app.get(
    "/cluster",
    async (c) => c.json(cluster === null ? { enabled: false } : await clusterStatus(cluster)),
  );
  const routes = [{ at: "/api/admin", app: new Hono().route("/", app) }];
  if (cluster === null) return { routes, figures: null, members: () => Promise.resolve([]) };
  const served: ServedState = {
    position: () => host.rows?.reached ?? cluster.leaderPosition(host.ts),
    sockets: () => sync.load().sockets,
    lagMs: () => following.figures?.().lagMs ?? null,
    makeBackup: maintenance.makeBackup,
    lapsed: () => parts.scheduling.endActions(),
    restart: requestReplacement,
  };
  return {
    routes,
    figures: () => cluster.figures,
    members: () => cluster.members(),
    start: () => cluster.serve(served),
    stop: () => cluster.unserve(served),
  };
}

async function clusterStatus(cluster: PostgresCluster): Promise<object> {
  const { id, location: place, figures: { role, epoch, awayMs, takeovers } } = cluster;
  const own = { enabled: true, id, place, role, epoch, takeovers };
  // Queries that started before the outage have no answer either.
  if (awayMs !== null) {
    return { ...own, database: { status: "away", forMs: Math.round(awayMs) }, servers: null };
  }
  const servers = await cluster.members().catch(() => null);
  const database = { status: servers === null ? "away" : "ok", forMs: 0 };
  return { ...own, database, servers };
}

/** Returns a function that resolves when all earlier commits of the cluster are shown, or after a timeout. */
export function caughtUpWith(
  cluster: Pick<PostgresCluster, "end">,
  { host, stuck, clock = steadyClock }: {
    readonly host: Pick<IsolateHost, "ts">;
    /** Whether this server cannot apply any more commits. */
    readonly stuck: () => boolean;
    readonly clock?: Clock;
  },
): (waitMs?: number) => Promise<void> {
  let asking: Promise<number> | null = null;
  let next: Promise<number> | null = null;
  const ask = async () => {
    const until = clock.now() + clusterLimits.startMs;
    for (;;) {
      const end = await cluster.end();
      if (end !== null || clock.now() > until) return end?.ts ?? 0;
      await pause(clock, clusterLimits.reconnectMs);
    }
  };
  // A query in flight may have been sent before the commit that the client has seen.
  const newest = () => {
    if (asking === null) return asking = ask().finally(() => asking = null);
    return next ??= asking.catch(() => 0).then(() => {
      next = null;
      return asking ??= ask().finally(() => asking = null);
    });
  };
  return async (waitMs = clusterLimits.socketWaitMs) => {
    const until = clock.now() + waitMs;
    const late = Promise.withResolvers<number>();
    const timer = clock.after(waitMs, () => late.resolve(0));
    const ts = await Promise.race([newest(), late.promise]).finally(() => timer.cancel());
    while (host.ts < ts && !stuck() && clock.now() < until) await pause(clock, clusterLimits.socketCheckMs);
  };
}
