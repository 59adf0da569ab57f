/** What the hub and the HTTP calls ask of accounts: whose token this is, and word of sessions that end. */
import type { Identity } from "../functions/identity.ts";

/** Texts of `AuthError` (AT2, SV5). */
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
    /** When the token stops being valid, milliseconds since the epoch; `null` for never. */
    readonly expiresAt: number | null;
  }
  | { readonly ok: false; readonly error: AuthErrorText };

/** A session that ended; or a principal whose credentials of every kind have ended, for tokens without a session. */
export type SessionEnd =
  | { readonly sessionId: string }
  | {
    readonly principal: string;
    /** Only credentials that stand for no session have ended: sessions of the principal go on. */
    readonly withoutSession?: boolean;
  };

export interface Authenticator {
  /** Checks an access token. A session that ends after the answer is told to the listeners. */
  verify(token: string): Promise<Verification>;
  /** Calls the listener in the turn in which main learns of the commit that ended a session. */
  onSessionEnd(listener: (ended: SessionEnd) => void): void;
}

const TOKEN_SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** A server without accounts: nobody can have issued a token. */
export const noAccounts: Authenticator = {
  verify: (token) =>
    Promise.resolve({
      ok: false,
      error: TOKEN_SHAPE.test(token) ? "invalid access token signature" : "malformed access token",
    }),
  onSessionEnd: () => {},
};
