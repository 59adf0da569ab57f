/** `GET /api/admin/live`: the rooms of connected clients and the streams of actions, for the dashboard. */
import { Hono } from "hono";
import { type AdminEnv, adminGuard } from "../../ops/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "./accounts.ts";
import { verifyWith } from "./admin.ts";
import type { PresenceFeature } from "./presence.ts";
import type { StreamsFeature } from "./streams.ts";

export function startLive(
  _: FeatureContext,
  { accounts: { authenticator }, presence: { hub }, streaming: { streams } }: {
    readonly accounts: AccountsFeature;
    readonly presence: Pick<PresenceFeature, "hub">;
    readonly streaming: Pick<StreamsFeature, "streams">;
  },
): Feature {
  const app = new Hono<AdminEnv>().use("*", adminGuard(verifyWith(authenticator)));
  // Requests to a follower are answered by the leader.
  app.get("/live", (c) => c.json({ rooms: hub?.summary ?? null, streams: streams?.summary ?? null }));
  return { routes: [{ at: "/api/admin", app: new Hono().route("/", app) }] };
}
