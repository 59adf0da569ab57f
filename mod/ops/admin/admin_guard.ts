/** The door of `/api/admin`: nothing behind it answers anybody but an administrator (AD1). */
import type { Context, MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors.ts";
import type { Identity } from "../../functions/identity.ts";

/** Who a request behind the door comes from. */
export interface AdminEnv {
  Variables: {
    /** Id of the administrator; of the key, for requests with a deploy key. */
    readonly adminId: string;
    /** Empty for requests with a deploy key. */
    readonly sessionId: string;
    /** Who it is, for people. */
    readonly calledBy: string;
    /** Name of the deploy key that the request came with. */
    readonly deployKey?: string;
    /** When the time of its token is over, milliseconds since the epoch. */
    readonly expiresAt: number;
    /**
     * Throws `invalid_token` if the session has ended or the key was revoked since the request was let in. A request that
     * takes long calls it right before it takes effect (AD14). The age of the access token does not matter.
     */
    readonly confirmAccess: () => Promise<void>;
    /** What the audit log is told of the request beside its path; set by its route. */
    noted?: Readonly<Record<string, unknown>>;
  };
}

/** Whose access token this is, and until when; `null` when it is not valid, or its session has ended. */
export type VerifyToken = (token: string) => Promise<VerifiedToken | null>;

export interface VerifiedToken {
  readonly identity: Identity;
  readonly expiresAt: number;
  /** Returns whether the administrator's session is still live, whatever the age of the token. */
  readonly isLive: () => Promise<boolean>;
}

/** Keys that open some of the paths. */
export interface OtherKeys {
  readonly opens: (path: string) => boolean;
  /** Whose key it is; `null` when it is none, or was revoked. */
  readonly verify: (token: string) => Promise<{ readonly keyId: string; readonly name: string } | null>;
}

const BEARER = /^Bearer +(\S+) *$/i;

/**
 * Lets requests with the access token of an administrator's live session through, and those with another key where that
 * opens. All others get 401 `invalid_token`, with one text whatever is wrong with them. No answer may be kept by a cache.
 */
export function adminGuard(verify: VerifyToken, keys: OtherKeys | null = null): MiddlewareHandler<AdminEnv> {
  return async (c, next) => {
    const token = BEARER.exec(c.req.header("authorization") ?? "")?.[1] ?? "";
    const key = keys?.opens(c.req.path) ? await keys.verify(token) : null;
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
