/** `GET /api/admin/live`: rooms of connected clients, streams of actions and rate limits of the app, for the dashboard. */
import { Hono } from "hono";
import type { rateLimitFunctions, UsedRateLimit } from "../../functions/isolate/mod.ts";
import { SystemCalls } from "../../functions/system_calls.ts";
import { type AdminEnv, adminGuard } from "../../ops/mod.ts";
import type { RefusedLimit, RunStats } from "../../ops/stats/mod.ts";
import type { RoomSummary } from "../../presence/mod.ts";
import { createApi } from "../../protocol/api_reference.ts";
import type { StreamSummary } from "../../streams/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "./accounts.ts";
import { verifyWith } from "./admin.ts";
import type { PresenceFeature } from "./presence.ts";
import type { StreamsFeature } from "./streams.ts";

const system = createApi<{ "_system/rateLimits": typeof rateLimitFunctions }>().internal._system.rateLimits;

/** Response of `GET /api/admin/live`. The leader answers the requests of its followers. */
export interface LiveState {
  readonly rooms: RoomSummary | null;
  readonly streams: StreamSummary | null;
  readonly rateLimits: {
    /** Limits with stored buckets. */
    readonly used: readonly UsedRateLimit[];
    /** Limits that have refused a mutation since the server started. */
    readonly refused: readonly RefusedLimit[];
  };
}

export function startLive(
  { port }: FeatureContext,
  { accounts: { authenticator }, presence: { hub }, streaming: { streams }, runStats }: {
    readonly accounts: AccountsFeature;
    readonly presence: Pick<PresenceFeature, "hub">;
    readonly streaming: Pick<StreamsFeature, "streams">;
    readonly runStats: RunStats;
  },
): Feature {
  const calls = new SystemCalls(port);
  const app = new Hono<AdminEnv>().use("*", adminGuard(verifyWith(authenticator)));
  app.get("/live", async (c) => {
    const used = await calls.query(system.list, {});
    return c.json(
      {
        rooms: hub?.summary ?? null,
        streams: streams?.summary ?? null,
        rateLimits: { used, refused: runStats.totals.refusedLimits.limits },
      } satisfies LiveState,
    );
  });
  return { routes: [{ at: "/api/admin", app: new Hono().route("/", app) }] };
}
