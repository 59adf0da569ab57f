/** Endpoints of administrators: impersonation, tests of storage locations, and restarts. */
import { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readJsonBody } from "../../kit/request_body.ts";
import { type LocationProbe, probeLocation } from "../../kit/locations/location_probe.ts";
import type { Log } from "../../kit/log.ts";
import { opsLimits } from "../limits.ts";
import type { AdminEnv } from "./admin_guard.ts";

export interface ImpersonationCall {
  readonly userId: string;
  readonly adminId: string;
  /** The administrator's own session. The impersonation ends with it. */
  readonly adminSession: string;
  /** Lifetime of the session, regardless of token refreshes. */
  readonly lifetimeMs: number;
  readonly userAgent: string | null;
}

export interface ImpersonationRoutesOptions {
  /** Returns the token response of the contract; `null` if the user does not exist. */
  readonly impersonate: (call: ImpersonationCall) => Promise<object | null>;
  readonly log: Log;
}

const bodySchema = z.object({
  userId: z.string(),
  ttlSeconds: z.int().min(1).max(opsLimits.impersonationSecondsMax)
    .default(opsLimits.impersonationSecondsDefault),
});

/** `POST /api/admin/impersonate`: creates a session in which an administrator acts as a user. */
export function impersonationRoutes({ impersonate, log }: ImpersonationRoutesOptions): Hono<AdminEnv> {
  return new Hono<AdminEnv>().post("/impersonate", async (c) => {
    const body = await readJsonBody(c.req.raw, bodySchema, { bytesMax: opsLimits.bodyBytesMax });
    const { userId, ttlSeconds } = body;
    const adminId = c.get("adminId");
    c.set("noted", { userId, ttlSeconds });
    const userAgent = c.req.header("user-agent") ?? null;
    const tokens = await impersonate({
      userId,
      adminId,
      adminSession: c.get("sessionId"),
      lifetimeMs: ttlSeconds * 1000,
      userAgent,
    });
    if (tokens === null) throw new ServiceError("not_found", "User not found");
    log("info", "Impersonation started", { adminId, userId, ttlSeconds });
    return c.json(tokens);
  });
}

/** By name; `null` if not configured. */
export type TestedLocations = Readonly<Record<"files" | "replica", () => LocationProbe | null>>;

/** Throws `not_found` for a location that is not configured, and `overloaded` if its test is already running. */
export function locationRoutes(locations: TestedLocations): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  const running = new Set<string>();
  app.post("/places/:name/check", async (c) => {
    const name = c.req.param("name");
    const probe = Object.hasOwn(locations, name) ? locations[name as keyof TestedLocations]() : null;
    if (probe === null) throw new ServiceError("not_found", `No location is configured for "${name}"`);
    if (running.has(name)) {
      throw new ServiceError("overloaded", "A test of this location is already running. Try again later.");
    }
    running.add(name);
    try {
      return c.json(await probeLocation(probe, { stepMs: opsLimits.placeStepMs }));
    } finally {
      running.delete(name);
    }
  });
  return app;
}

export interface RestartRoutesOptions {
  /** Starts a graceful stop; requests in progress are answered. `null` without a supervisor. */
  readonly restart: (() => void) | null;
  readonly log: Log;
}

/** `/api/admin/restore/restart`: `POST` restarts the process, which applies a staged restore; `GET` returns whether that is possible. */
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
