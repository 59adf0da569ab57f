/** Readiness of this server. */
import { statfs } from "node:fs/promises";
import { SystemCalls } from "../../functions/system_calls.ts";
import { healthRoutes, Readiness } from "../../ops/health/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { ReplicationFeature } from "./replication.ts";

export function startHealth(
  { port, config: { dataDir } }: FeatureContext,
  { replication }: Pick<ReplicationFeature, "replication">,
): Feature {
  const readiness = new Readiness({
    calls: new SystemCalls(port),
    async freeBytes() {
      try {
        const { bavail, bsize } = await statfs(dataDir);
        return bavail * bsize;
      } catch {
        return null;
      }
    },
    replicationLagMs: () => replication?.figures().lagMs ?? null,
    now: Date.now,
  });
  return {
    routes: [{ at: "/api/health", app: healthRoutes(readiness) }],
  };
}
