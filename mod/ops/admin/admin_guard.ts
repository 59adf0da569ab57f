/** The door of `/api/admin`: nothing behind it answers anybody but an administrator (AD1). */
import type { MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors.ts";
import type { Identity } from "../../functions/identity.ts";

/** Who a request behind the door comes from. */
export interface AdminEnv {
  Variables: {
    /** Id of the administrator. */
    readonly adminId: string;
    readonly sessionId: string;
    /** When the time of its token is over, milliseconds since the epoch. */
    readonly expiresAt: number;
    /** What the audit log is told of the request beside its path; set by its route. */
    noted?: Readonly<Record<string, unknown>>;
  };
}

/** Whose access token this is, and until when; `null` when it is not valid, or its session has ended. */
export type VerifyToken = (
  token: string,
) => Promise<{ readonly identity: Identity; readonly expiresAt: number } | null>;

const BEARER = /^Bearer +(\S+) *$/i;

/**
 * Lets requests with the access token of an administrator's live session through. All others get 401 `invalid_token`, with
 * one text whatever is wrong with them. No answer may be kept by a cache.
 */
export function adminGuard(verify: VerifyToken): MiddlewareHandler<AdminEnv> {
  return async (c, next) => {
    const token = BEARER.exec(c.req.header("authorization") ?? "")?.[1];
    const verified = token === undefined ? null : await verify(token);
    const { adminId = null, sessionId = null } = verified?.identity ?? {};
    if (verified === null || adminId === null || sessionId === null) {
      throw new ServiceError("invalid_token");
    }
    c.set("adminId", adminId);
    c.set("sessionId", sessionId);
    c.set("expiresAt", verified.expiresAt);
    await next();
    c.header("Cache-Control", "no-store");
  };
}
