/** Authentication of `/api/admin`: only administrators pass (AD1), whose role allows the request (AD15). */
import type { Context, MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors.ts";
import { type AdminRole, isAllowed, requestRole, roleText } from "../../functions/admin_roles.ts";
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
    /** Throws `invalid_token` if the session or key has ended, `role_required` if the role has changed. Long requests call it right before they take effect (AD14). */
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
  /** Returns the administrator's present role; `null` if the session has ended, regardless of the token's age. */
  readonly role: () => Promise<AdminRole | null>;
}

/** Keys that authorize some paths. */
export interface KeyVerifier {
  readonly accepts: (path: string) => boolean;
  /** Verifies the key of a request; `null` if it is unknown or has ended. */
  readonly verify: (
    token: string,
    c: Context,
  ) => Promise<{ readonly keyId: string; readonly name: string } | null>;
  /** Whether a key is active after all commits so far. */
  readonly isActive: (keyId: string) => Promise<boolean>;
}

const BEARER = /^Bearer +(\S+) *$/i;

/** Passes administrators of active sessions, and accepted keys. All others get one 401 `invalid_token`. Never cached. */
export function adminGuard(
  verify: VerifyToken,
  keys?: KeyVerifier,
): MiddlewareHandler<AdminEnv> {
  return async (c, next) => {
    const token = BEARER.exec(c.req.header("authorization") ?? "")?.[1] ?? "";
    const key = keys?.accepts(c.req.path) ? await keys.verify(token, c) : null;
    if (key === null) await passAdministrator(c, token === "" ? null : await verify(token));
    else {
      c.set("adminId", key.keyId);
      c.set("sessionId", "");
      c.set("expiresAt", Infinity);
      c.set("deployKey", key.name);
      c.set("calledBy", `deploy key ${key.name}`);
      c.set("confirmAccess", async () => {
        if (!await keys?.isActive(key.keyId)) throw new ServiceError("invalid_token");
      });
    }
    await next();
    c.header("Cache-Control", "no-store");
  };
}

async function passAdministrator(c: Context<AdminEnv>, verified: VerifiedToken | null): Promise<void> {
  const { adminId = null, sessionId = null } = verified?.identity ?? {};
  if (verified === null || adminId === null || sessionId === null) {
    throw new ServiceError("invalid_token");
  }
  const required = requestRole(c.req.method, c.req.path.replace(/^\/api\/admin/, ""));
  const confirmAccess = async () => {
    const role = await verified.role();
    if (role === null) throw new ServiceError("invalid_token");
    if (!isAllowed(role, required)) throw new ServiceError("role_required", roleText(required));
  };
  await confirmAccess();
  c.set("adminId", adminId);
  c.set("sessionId", sessionId);
  c.set("expiresAt", verified.expiresAt);
  c.set("calledBy", adminId);
  c.set("confirmAccess", confirmAccess);
}
