/** Fake tokens: `u1.s1` is the session s1 of user u1, and anything else is refused. */
import type { Authenticator, SessionEnd, Verification } from "../../../mod/sync/authenticator.ts";

const TOKEN = /^(u\d+)\.(s\d+)$/;

export class FakeAuthenticator implements Authenticator {
  /** Expiry by token. */
  readonly expiresAt = new Map<string, number>();
  readonly ended = new Set<string>();
  /** While set, verifications wait until it is resolved. */
  gate: Promise<void> | null = null;
  readonly #listeners: ((ended: SessionEnd) => void)[] = [];

  async verify(token: string): Promise<Verification> {
    if (token === "throws") throw new Error("the database is away");
    const [, userId, sessionId] = TOKEN.exec(token) ?? [];
    const answer: Verification = userId === undefined || sessionId === undefined
      ? { ok: false, error: "malformed access token" }
      : this.ended.has(sessionId)
      ? { ok: false, error: "session has ended" }
      : {
        ok: true,
        identity: { principal: `user:${userId}`, userId, adminId: null, sessionId },
        expiresAt: this.expiresAt.get(token) ?? null,
      };
    if (this.gate !== null) await this.gate;
    return answer;
  }

  onSessionEnd(listener: (ended: SessionEnd) => void): void {
    this.#listeners.push(listener);
  }

  end(ended: SessionEnd): void {
    if ("sessionId" in ended) this.ended.add(ended.sessionId);
    for (const listener of this.#listeners) listener(ended);
  }
}
