/** Readiness of this server. */
import { statfs } from "node:fs/promises";
import { SystemCalls } from "../../functions/system_calls.ts";
import { healthRoutes, Readiness } from "../../ops/health/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";

export function startHealth({ port, config: { dataDir } }: FeatureContext): Feature {
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
    // A server that replicates tells it here.
    replicationLagMs: () => null,
    now: Date.now,
  });
  return {
    routes: [{ at: "/api/health", app: healthRoutes(readiness) }],
  };
}
