/** `POST /api/admin/impersonate`: creates a session in which an administrator acts as a user. */
import { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readJsonBody } from "../../kit/json_body.ts";
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
