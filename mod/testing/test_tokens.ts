/** Authenticator of a test server: tokens that name an identity, without passwords or signatures. */
import type { Identity } from "../functions/identity.ts";
import type { Authenticator, SessionEnd, Verification } from "../sync/mod.ts";

export class TestTokens implements Authenticator {
  readonly #identities = new Map<string, Identity>();
  readonly #listeners: ((ended: SessionEnd) => void)[] = [];

  /** Returns a token for an identity, valid until its session ends. */
  issue(identity: Identity): string {
    const token = `test.${identity.sessionId}.token`;
    this.#identities.set(token, identity);
    return token;
  }

  /** Ends a session, like signing out. */
  endSession(sessionId: string): void {
    this.#identities.delete(`test.${sessionId}.token`);
    for (const listener of this.#listeners) listener({ sessionId });
  }

  verify(token: string): Promise<Verification> {
    const identity = this.#identities.get(token);
    if (identity === undefined) {
      const error = token.startsWith("test.") ? "session has ended" : "malformed access token";
      return Promise.resolve({ ok: false, error });
    }
    return Promise.resolve({ ok: true, identity, expiresAt: null });
  }

  onSessionEnd(listener: (ended: SessionEnd) => void): void {
    this.#listeners.push(listener);
  }
}
