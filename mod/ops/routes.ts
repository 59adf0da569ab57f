/** All there is below `/api/admin` (contract: Admin and operations endpoints). */
import { Hono } from "hono";
import type { Log } from "../kit/log.ts";
import { type AdminEnv, adminGuard, type VerifyToken } from "./admin/admin_guard.ts";
import { type ImpersonationCall, impersonationRoutes } from "./admin/impersonation_routes.ts";
import { restartRoutes } from "./admin/restart_routes.ts";

export interface AdminRoutesOptions {
  readonly verify: VerifyToken;
  /** Gives the token response of the contract; `null` when there is no such user. */
  readonly impersonate: (call: ImpersonationCall) => Promise<object | null>;
  /** Begins an orderly stop that ends in a restart; `null` when nobody would start the process again. */
  readonly restart: (() => void) | null;
  readonly log: Log;
}

/** The sub-app for `/api/admin`. Errors leave as `ServiceError`; who mounts it turns them into responses. */
export function adminRoutes({ verify, impersonate, restart, log }: AdminRoutesOptions): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  // Before all others, unknown paths included: strangers do not learn what there is.
  app.use("*", adminGuard(verify));
  app.route("/", impersonationRoutes({ impersonate, log }));
  app.get("/replication", (c) => c.json({ enabled: false }));
  if (restart !== null) app.route("/", restartRoutes({ restart, log }));
  return app;
}
