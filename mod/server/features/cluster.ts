/** A server as one of several: what it is in its cluster, what administrators are told, and how sockets see no older state. */
import { Hono } from "hono";
import type { ClusterFigures, PostgresCluster, ServedState } from "../../cluster/postgres/mod.ts";
import { clusterLimits } from "../../cluster/postgres/limits.ts";
import type { ServeConfig } from "../../config/config.ts";
import { StartError } from "../../config/start_error.ts";
import type { IsolateHost } from "../../functions/host/mod.ts";
import { type Clock, steadyClock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import { type AdminEnv, adminGuard } from "../../ops/mod.ts";
import type { HubWork } from "./summed_work.ts";
import { secretText, useSecretText } from "../data/secret.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "./accounts.ts";
import { verifyWith } from "./admin.ts";
import { ClusterCode } from "./cluster_code.ts";
import type { FollowingFeature } from "./following.ts";
import type { MaintenanceFeature } from "./maintenance.ts";
import type { SchedulingFeature } from "./scheduling.ts";

/** Finds the cluster of a server, or makes it; `null` for one that is alone. Throws a `StartError`. */
export async function joinCluster(
  { dataDir, cluster }: Pick<ServeConfig, "dataDir" | "cluster">,
  { address, log }: { readonly address: string; readonly log: Log },
): Promise<PostgresCluster | null> {
  if (cluster === null) return null;
  await ClusterCode.clear(dataDir);
  // The driver is loaded only here.
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

/** What this server is in its cluster now, with the database ready for it. Throws a `StartError`. */
export async function beginInCluster(
  config: ServeConfig,
  { cluster, willLead }: { readonly cluster: PostgresCluster | null; readonly willLead: boolean },
): Promise<ServeConfig> {
  if (cluster === null) return config;
  // It has the lease when it is given the database.
  if (willLead) return { ...config, clusterRole: "leader" };
  const { ClusterError } = await import("../../cluster/postgres/mod.ts");
  try {
    const clusterRole = await cluster.begin();
    // The leader makes them.
    return { ...config, clusterRole, ...(clusterRole === "follower" && { backups: null }) };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    throw new StartError(error.message, { cause: error });
  }
}

/** What is asked again and again without anybody looking at what is shown. */
const NO_LOOK = /^\/(?:metrics|api\/health(?:\/.*)?)$/;

export interface ClusterFeature extends Feature {
  /** `null` on a server that is alone. */
  readonly figures: (() => ClusterFigures) | null;
}

export interface ClusterParts {
  readonly cluster: PostgresCluster | null;
  readonly accounts: AccountsFeature;
  readonly following: Pick<FollowingFeature, "figures">;
  readonly maintenance: MaintenanceFeature;
  readonly sync: { readonly work: Pick<HubWork, "socketCount"> };
  /** Started behind this one. */
  readonly scheduling: Pick<SchedulingFeature, "endActions">;
}

export function startClustering({ host, renew }: FeatureContext, parts: ClusterParts): ClusterFeature {
  const { cluster, accounts: { authenticator }, following, maintenance, sync: { work } } = parts;
  const app = new Hono<AdminEnv>().use("*", adminGuard(verifyWith(authenticator)));
  app.get("/cluster", async (c) => c.json(cluster === null ? { enabled: false } : await told(cluster)));
  const routes = [{ at: "/api/admin", app: new Hono().route("/", app) }];
  if (cluster === null) return { routes, figures: null };
  // What waits for rows is shown what they hold at once.
  host.onAwaited(() => void cluster.look());
  const served: ServedState = {
    position: () => cluster.role === "follower" ? host.reached : cluster.leaderPosition(host.ts),
    sockets: () => work.socketCount,
    lagMs: () => following.figures?.().lagMs ?? null,
    makeBackup: maintenance.makeBackup,
    lapsed: () => parts.scheduling.endActions(),
    renew,
  };
  return {
    routes,
    figures: () => cluster.figures,
    start: () => cluster.serve(served),
    stop: () => cluster.unserve(served),
  };
}

async function told(cluster: PostgresCluster): Promise<object> {
  const { id, place, figures: { role, epoch, awayMs, takeovers } } = cluster;
  const own = { enabled: true, id, place, role, epoch, takeovers };
  // What was asked before has no answer either.
  if (awayMs !== null) {
    return { ...own, database: { status: "away", forMs: Math.round(awayMs) }, servers: null };
  }
  const servers = await cluster.members().catch(() => null);
  const database = { status: servers === null ? "away" : "ok", forMs: 0 };
  return { ...own, database, servers };
}

/**
 * Resolves when what was committed anywhere before the call is shown here, or after a bounded time. Who asks at once asks once.
 */
export function caughtUpWith(
  cluster: Pick<PostgresCluster, "end" | "look">,
  { host, stuck, clock = steadyClock }: {
    readonly host: Pick<IsolateHost, "ts">;
    /** Whether nothing more is shown here, however long it is waited for. */
    readonly stuck: () => boolean;
    readonly clock?: Clock;
  },
): (waitMs?: number) => Promise<void> {
  let asking: Promise<number> | null = null;
  let next: Promise<number> | null = null;
  const wait = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
  const ask = async () => {
    const until = clock.now() + clusterLimits.startMs;
    for (;;) {
      const end = await cluster.end();
      if (end !== null || clock.now() > until) return end?.ts ?? 0;
      await wait(clusterLimits.reconnectMs);
    }
  };
  // One that is under way may have been asked before the commit that somebody has seen.
  const newest = () => {
    if (asking === null) return asking = ask().finally(() => asking = null);
    return next ??= asking.catch(() => 0).then(() => {
      next = null;
      return asking ??= ask().finally(() => asking = null);
    });
  };
  return async (waitMs = clusterLimits.socketWaitMs) => {
    cluster.look();
    const until = clock.now() + waitMs;
    const late = Promise.withResolvers<number>();
    const timer = clock.after(waitMs, () => late.resolve(0));
    const ts = await Promise.race([newest(), late.promise]).finally(() => timer.cancel());
    while (host.ts < ts && !stuck() && clock.now() < until) await wait(clusterLimits.socketLookMs);
  };
}

/**
 * Asked with the path of each request that this server answers by itself while it follows: `null`, or what the request waits
 * for, which is bounded and never rejects. Where nobody had looked for a while what is shown may be a second old.
 */
export function lookedAt(
  cluster: Pick<PostgresCluster, "look" | "figures">,
  caughtUp: (waitMs: number) => Promise<void>,
): (path: string) => Promise<void> | null {
  let waking: Promise<void> | null = null;
  return (path) => {
    if (NO_LOOK.test(path)) return null;
    if (cluster.look() && cluster.figures.awayMs === null) {
      // What the database refuses is told by whoever follows; what is here can be shown.
      waking = caughtUp(clusterLimits.firstLookWaitMs).catch(() => {}).finally(() => waking = null);
    }
    // Sockets wait by themselves.
    return path === "/api/sync" ? null : waking;
  };
}
