/** Accounts of the simulation: tokens such as `u1.s2`, sessions that end, slow verifications. */
import { anonymous, type Identity } from "../../../mod/functions/identity.ts";
import type { Authenticator, SessionEnd, Verification } from "../../../mod/sync/authenticator.ts";

export const tokens = ["u1.s1", "u1.s2", "u2.s3", "u3.s4"] as const;

export class SimAuthenticator implements Authenticator {
  readonly ended = new Set<string>();
  /** Tokens that expire, with the time. */
  readonly expiresAt = new Map<string, number>();
  readonly #waiting: (() => void)[] = [];
  readonly #listeners: ((ended: SessionEnd) => void)[] = [];

  verify(token: string): Promise<Verification> {
    const answer = this.#check(token);
    return new Promise((resolve) => this.#waiting.push(() => resolve(answer)));
  }

  onSessionEnd(listener: (ended: SessionEnd) => void): void {
    this.#listeners.push(listener);
  }

  get busy(): boolean {
    return this.#waiting.length > 0;
  }

  /** Ends the oldest verification. */
  step(): void {
    this.#waiting.shift()?.();
  }

  /** Ends a session; later it may be signed in again under the same name. */
  end(sessionId: string): void {
    this.ended.add(sessionId);
    for (const listener of this.#listeners) listener({ sessionId });
  }

  #check(token: string): Verification {
    const { sessionId } = identityOf(token);
    if (sessionId === null) return { ok: false, error: "malformed access token" };
    if (this.ended.has(sessionId)) return { ok: false, error: "session has ended" };
    return { ok: true, identity: identityOf(token), expiresAt: this.expiresAt.get(token) ?? null };
  }
}

/** The owner of a token; anonymous for an unknown one. */
export function identityOf(token: string | null): Identity {
  const [, userId, sessionId] = /^(u\d)\.(s\d)$/.exec(token ?? "") ?? [];
  if (userId === undefined || sessionId === undefined) return anonymous;
  return { principal: `user:${userId}`, userId, adminId: null, sessionId };
}
