/**
 * `POST /api/admin/restore/restart`: stops the process so that its supervisor restarts it and a staged restore is applied.
 * `GET` returns whether a restart is available.
 */
import { Hono } from "hono";
import { ServiceError } from "../../errors.ts";
import type { Log } from "../../kit/log.ts";
import type { AdminEnv } from "./admin_guard.ts";

export interface RestartRoutesOptions {
  /** Starts a graceful stop; requests in progress are answered. `null` without a supervisor. */
  readonly restart: (() => void) | null;
  readonly log: Log;
}

export function restartRoutes({ restart, log }: RestartRoutesOptions): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  app.get("/restore/restart", (c) => c.json({ offered: restart !== null }));
  app.post("/restore/restart", (c) => {
    if (restart === null) throw new ServiceError("not_found");
    log("info", "Restart requested by an administrator", { adminId: c.get("adminId") });
    restart();
    return c.json({});
  });
  return app;
}
