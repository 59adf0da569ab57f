/** Authenticates callers, and names the keys of their fair queues and timeouts. */
import type { Caller } from "../functions/host_port.ts";
import type { Identity } from "../functions/identity.ts";
import { addressKey } from "../kit/client_address.ts";

/** A signed-in user is one caller across all sockets. Anyone else is `guest`. */
export function callerOf({ principal }: Identity, guest: Caller): Caller {
  return principal === null ? guest : { queueKey: principal, blame: principal };
}

/** An anonymous caller. It queues by socket if it has one, otherwise by address. */
export function guestCaller(address: string, socket: number | null = null): Caller {
  const blame = `address ${addressKey(address)}`;
  return { queueKey: socket === null ? blame : `socket ${socket}`, blame };
}

/** An anonymous caller that queues by session, so that mutations resent on a new socket stay behind those of the old one. */
export function guestInSession({ blame }: Caller, sessionId: string): Caller {
  return { queueKey: `session ${sessionId}`, blame };
}

/** Error texts of `AuthError` (AT2, SV5). */
export type AuthErrorText =
  | "malformed access token"
  | "invalid access token signature"
  | "access token expired"
  | "session has ended"
  | "unknown token issuer"
  | "unknown token signing key"
  | "invalid access token claims"
  | "access token not yet valid";

export type Verification =
  | {
    readonly ok: true;
    readonly identity: Identity;
    /** When the token expires, milliseconds since the epoch. `null` for never. */
    readonly expiresAt: number | null;
  }
  | { readonly ok: false; readonly error: AuthErrorText };

/** An ended session, or a principal whose credentials were all revoked (for tokens without a session). */
export type SessionEnd =
  | { readonly sessionId: string }
  | {
    readonly principal: string;
    /** Only credentials without a session were revoked. The principal's sessions continue. */
    readonly withoutSession?: boolean;
  };

/** Whether the end of a session or principal ends what this identity may do. */
export function concerns(ended: SessionEnd, { sessionId, principal }: Identity): boolean {
  if ("sessionId" in ended) return ended.sessionId === sessionId;
  return ended.principal === principal && (ended.withoutSession !== true || sessionId === null);
}

export interface Authenticator {
  /**
   * Verifies an access token or an API key. Sessions that end later are reported to the listeners. `client` is the sender, whose
   * unknown API keys are limited.
   */
  verify(token: string, client?: string): Promise<Verification>;
  /** Registers a listener, called synchronously when main processes the commit that ended a session. */
  onSessionEnd(listener: (ended: SessionEnd) => void): void;
}

const TOKEN_SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** Used by a server without accounts: no token is valid. */
export const noAccounts: Authenticator = {
  verify: (token) =>
    Promise.resolve({
      ok: false,
      error: TOKEN_SHAPE.test(token) ? "invalid access token signature" : "malformed access token",
    }),
  onSessionEnd: () => {},
};
