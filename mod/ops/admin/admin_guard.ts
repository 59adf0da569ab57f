/** Authentication of `/api/admin`: only administrators pass (AD1). */
import type { Context, MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors.ts";
import type { Identity } from "../../functions/identity.ts";

/** The authenticated caller of a request. */
export interface AdminEnv {
  Variables: {
    /** ID of the administrator, or of the deploy key. */
    readonly adminId: string;
    /** Empty for requests with a deploy key. */
    readonly sessionId: string;
    readonly calledBy: string;
    readonly deployKey?: string;
    /** Expiry of the token, milliseconds since the epoch. */
    readonly expiresAt: number;
    /** Throws `invalid_token` if the session or key has ended. Long requests call it right before they take effect (AD14). */
    readonly confirmAccess: () => Promise<void>;
    /** Additional details for the audit log, set by the route. With `dryRun: true` the request is not recorded. */
    noted?: Readonly<Record<string, unknown>>;
  };
}

/** Verifies an access token; `null` if it is invalid or its session has ended. */
export type VerifyToken = (token: string) => Promise<VerifiedToken | null>;

export interface VerifiedToken {
  readonly identity: Identity;
  readonly expiresAt: number;
  /** Whether the administrator's session is still active, regardless of the token's age. */
  readonly isLive: () => Promise<boolean>;
}

/** Keys that authorize some paths. */
export interface KeyVerifier {
  readonly accepts: (path: string) => boolean;
  /** Verifies a key; `null` if it is unknown or revoked. */
  readonly verify: (token: string) => Promise<{ readonly keyId: string; readonly name: string } | null>;
}

const BEARER = /^Bearer +(\S+) *$/i;

/** Passes administrators of active sessions, and accepted keys. All others get one 401 `invalid_token`. Never cached. */
export function adminGuard(
  verify: VerifyToken,
  keys: KeyVerifier | null = null,
): MiddlewareHandler<AdminEnv> {
  return async (c, next) => {
    const token = BEARER.exec(c.req.header("authorization") ?? "")?.[1] ?? "";
    const key = keys?.accepts(c.req.path) ? await keys.verify(token) : null;
    if (key === null) passAdministrator(c, token === "" ? null : await verify(token));
    else {
      c.set("adminId", key.keyId);
      c.set("sessionId", "");
      c.set("expiresAt", Infinity);
      c.set("deployKey", key.name);
      c.set("calledBy", `deploy key ${key.name}`);
      c.set("confirmAccess", confirming(async () => await keys?.verify(token) !== null));
    }
    await next();
    c.header("Cache-Control", "no-store");
  };
}

function passAdministrator(c: Context<AdminEnv>, verified: VerifiedToken | null): void {
  const { adminId = null, sessionId = null } = verified?.identity ?? {};
  if (verified === null || adminId === null || sessionId === null) {
    throw new ServiceError("invalid_token");
  }
  c.set("adminId", adminId);
  c.set("sessionId", sessionId);
  c.set("expiresAt", verified.expiresAt);
  c.set("calledBy", adminId);
  c.set("confirmAccess", confirming(verified.isLive));
}

function confirming(isLive: () => Promise<boolean>): () => Promise<void> {
  return async () => {
    if (!await isLive()) throw new ServiceError("invalid_token");
  };
}
