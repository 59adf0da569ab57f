/** `POST /api/admin/restore/restart`: lets the supervisor of the process start it again, so that a staged restore is applied. */
import { Hono } from "hono";
import type { Log } from "../../kit/log.ts";
import type { AdminEnv } from "./admin_guard.ts";

export interface RestartRoutesOptions {
  /** Begins an orderly stop; requests under way are answered. */
  readonly restart: () => void;
  readonly log: Log;
}

export function restartRoutes({ restart, log }: RestartRoutesOptions): Hono<AdminEnv> {
  return new Hono<AdminEnv>().post("/restore/restart", (c) => {
    log("info", "An administrator asked for a restart", { adminId: c.get("adminId") });
    restart();
    return c.json({});
  });
}
