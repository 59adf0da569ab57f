/**
 * `POST /api/admin/restore/restart`: lets the supervisor of the process start it again, so that a staged restore is applied.
 * `GET` says beforehand whether there is one.
 */
import { Hono } from "hono";
import { ServiceError } from "../../errors.ts";
import type { Log } from "../../kit/log.ts";
import type { AdminEnv } from "./admin_guard.ts";

export interface RestartRoutesOptions {
  /** Begins an orderly stop; requests under way are answered. `null` when nobody would start the process again. */
  readonly restart: (() => void) | null;
  readonly log: Log;
}

export function restartRoutes({ restart, log }: RestartRoutesOptions): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  app.get("/restore/restart", (c) => c.json({ offered: restart !== null }));
  app.post("/restore/restart", (c) => {
    if (restart === null) throw new ServiceError("not_found");
    log("info", "An administrator asked for a restart", { adminId: c.get("adminId") });
    restart();
    return c.json({});
  });
  return app;
}
