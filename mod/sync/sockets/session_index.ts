/** Sockets by session and principal. The end of a session reaches each socket that uses it or verifies one of its tokens. */
import type { Identity } from "../../functions/identity.ts";
import { type Authenticator, concerns, type SessionEnd, type Verification } from "../authenticator.ts";

export interface SessionSocket {
  sessionEnded(ended: SessionEnd): void;
}

export class SessionIndex {
  readonly #authenticator: Authenticator;
  readonly #sockets = new Map<string, Set<SessionSocket>>();
  /** Sessions that ended during each verification in progress. */
  readonly #verifications = new Set<SessionEnd[]>();

  constructor(authenticator: Authenticator) {
    this.#authenticator = authenticator;
    authenticator.onSessionEnd((ended) => this.#ended(ended));
  }

  /**
   * Verifies a token. Calls `done` with `null` if that failed. A callback instead of a promise: no session may end between the
   * result and the call of `add`. Unknown API keys are limited by `client`, the sender.
   */
  async verify(
    token: string,
    done: (verification: Verification | null) => void,
    client?: string,
  ): Promise<void> {
    const ended: SessionEnd[] = [];
    this.#verifications.add(ended);
    const verification = await this.#authenticator.verify(token, client).catch(() => null);
    this.#verifications.delete(ended);
    const isOver = verification?.ok === true && ended.some((end) => concerns(end, verification.identity));
    done(isOver ? { ok: false, error: "session has ended" } : verification);
  }

  add(socket: SessionSocket, identity: Identity): void {
    for (const key of sessionKeys(identity)) {
      const sockets = this.#sockets.get(key);
      if (sockets === undefined) this.#sockets.set(key, new Set([socket]));
      else sockets.add(socket);
    }
  }

  remove(socket: SessionSocket, identity: Identity): void {
    for (const key of sessionKeys(identity)) {
      const sockets = this.#sockets.get(key);
      if (sockets?.delete(socket) && sockets.size === 0) this.#sockets.delete(key);
    }
  }

  #ended(ended: SessionEnd): void {
    const key = "sessionId" in ended ? `s${ended.sessionId}` : `p${ended.principal}`;
    for (const socket of [...this.#sockets.get(key) ?? []]) socket.sessionEnded(ended);
    for (const sessions of this.#verifications) sessions.push(ended);
  }
}

function* sessionKeys({ sessionId, principal }: Identity): Generator<string> {
  if (sessionId !== null) yield `s${sessionId}`;
  if (principal !== null) yield `p${principal}`;
}
