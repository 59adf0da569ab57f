/** `GET /api/admin/live`: the rooms of connected clients, for the dashboard. */
import { Hono } from "hono";
import { type AdminEnv, adminGuard } from "../../ops/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "./accounts.ts";
import { verifyWith } from "./admin.ts";
import type { PresenceFeature } from "./presence.ts";

export function startLive(
  _: FeatureContext,
  { accounts: { authenticator }, presence: { hub } }: {
    readonly accounts: AccountsFeature;
    readonly presence: Pick<PresenceFeature, "hub">;
  },
): Feature {
  const app = new Hono<AdminEnv>().use("*", adminGuard(verifyWith(authenticator)));
  app.get("/live", (c) => c.json({ rooms: hub?.summary ?? { rooms: 0, members: 0, largest: [] } }));
  return { routes: [{ at: "/api/admin", app: new Hono().route("/", app) }] };
}
