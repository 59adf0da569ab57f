/** Readiness of this server. */
import { clusterLimits } from "../../cluster/postgres/limits.ts";
import { SystemCalls } from "../../functions/system_calls.ts";
import { healthRoutes, Readiness } from "../../ops/health/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { ClusterFeature } from "./cluster.ts";
import type { FollowingFeature } from "./following.ts";
import type { ReplicationFeature } from "./replication.ts";
import { diskOf } from "./stats.ts";

export function startHealth(
  { port, listening = () => true, config: { dataDir } }: FeatureContext,
  { replication: { replication }, following: { figures }, clustering }: {
    readonly replication: ReplicationFeature;
    readonly following: FollowingFeature;
    readonly clustering: Pick<ClusterFeature, "figures">;
  },
): Feature {
  const readiness = new Readiness({
    calls: new SystemCalls(port),
    freeBytes: async () => (await diskOf(dataDir)).free,
    listening,
    replicationLagMs: () => replication?.figures().lagMs ?? null,
    follower: figures === null ? null : () => {
      const { ts, lagCommits, lagMs } = figures();
      return { ts, lagCommits, lagMs };
    },
    ...(clustering.figures !== null && { cluster: clusterPart(clustering.figures) }),
    now: Date.now,
  });
  return {
    routes: [{ at: "/api/health", app: healthRoutes(readiness) }],
  };
}

function clusterPart(figures: NonNullable<ClusterFeature["figures"]>) {
  return () => {
    const { role, awayMs, unlinkedMs } = figures();
    const isLost = unlinkedMs !== null && unlinkedMs >= clusterLimits.unlinkedMs;
    return {
      role,
      database: awayMs === null ? "ok" as const : "away" as const,
      ...(role === "follower" && { link: isLost ? "lost" as const : "ok" as const }),
    };
  };
}
