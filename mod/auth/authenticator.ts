/**
 * Checks access tokens for sockets and calls, and tells of sessions that end. Sessions are remembered in memory; the
 * commit stream keeps that memory true, so a session ends here in the turn in which its row's deletion is known.
 */
import type { CommitEntry, DocumentChange } from "../engine/types.ts";
import type { Identity } from "../functions/identity.ts";
import { authLimits } from "./limits.ts";
import { type AccessTokenError, type AccessTokens, tokenAlgorithm } from "./tokens/access_token.ts";
import type { OpenedSession } from "./isolate_functions/session_rows.ts";
import { system, type SystemCalls } from "./system_calls.ts";

/** Why a token is refused: the contract's AuthError texts for own tokens, and for tokens of nobody known. */
export type TokenRefusal = AccessTokenError | "session has ended" | "unknown token issuer";

export type TokenVerification =
  | { readonly ok: true; readonly identity: Identity; readonly expiresAt: number }
  | { readonly ok: false; readonly error: TokenRefusal };

/** A session that ended; or a principal all of whose sessions have ended. */
export type EndedSession = { readonly sessionId: string } | { readonly principal: string };

export interface AccountAuthenticatorOptions {
  readonly accessTokens: AccessTokens;
  readonly calls: SystemCalls;
  readonly now: () => number;
}

/** Sessions looked up again at once. */
const RECHECKED_AT_ONCE = 256;

/** A look-up under way; `outdated` when the session may have changed since it began. */
interface Lookup {
  readonly session: Promise<OpenedSession | null>;
  outdated: boolean;
}

export class AccountAuthenticator {
  readonly #accessTokens: AccessTokens;
  readonly #calls: SystemCalls;
  readonly #now: () => number;
  readonly #listeners: ((ended: EndedSession) => void)[] = [];
  /** Sessions known to exist, in order of last use. */
  readonly #sessions = new Map<string, OpenedSession>();
  readonly #lookups = new Map<string, Lookup>();

  constructor({ accessTokens, calls, now }: AccountAuthenticatorOptions) {
    this.#accessTokens = accessTokens;
    this.#calls = calls;
    this.#now = now;
  }

  /** Checks signature, claims, expiry, and that the session exists and has not expired. */
  async verify(token: string): Promise<TokenVerification> {
    const algorithm = tokenAlgorithm(token);
    if (algorithm !== null && algorithm !== "HS256") return { ok: false, error: "unknown token issuer" };
    const checked = this.#accessTokens.verify(token, this.#now());
    if (!checked.ok) return checked;
    const { sub, sid, adm = false, exp } = checked.claims;
    const session = await this.#session(sid);
    const owner = adm ? session?.adminId : session?.userId;
    if (!session || owner !== sub || session.expiresAt <= this.#now()) {
      return { ok: false, error: "session has ended" };
    }
    const { userId, adminId } = session;
    const identity = { principal: `${adm ? "admin" : "user"}:${sub}`, userId, adminId, sessionId: sid };
    return { ok: true, identity, expiresAt: exp * 1000 };
  }

  /** The session that a genuine token of this server names, also when the token has expired; `null` for any other. */
  sessionNamedBy(token: string): string | null {
    const opened = this.#accessTokens.open(token);
    return opened.ok ? opened.claims.sid : null;
  }

  /** Calls the listener in the turn in which the end of a session is known. */
  onSessionEnd(listener: (ended: EndedSession) => void): void {
    this.#listeners.push(listener);
  }

  /** Takes note of commits: to be called with each group, in order. */
  applyCommits(entries: readonly CommitEntry[]): void {
    for (const { changes } of entries) {
      for (const change of changes) {
        if (change.table === "_sessions") this.#sessionChanged(change);
        else if (change.doc === null && change.table === "_users") this.#ownerDeleted("user", change.id);
        else if (change.doc === null && change.table === "_admins") this.#ownerDeleted("admin", change.id);
      }
    }
  }

  /** Looks up again what is remembered, after commits may have been missed, and tells of the sessions that have ended. */
  async recheck(): Promise<void> {
    const known = [...this.#sessions.keys()];
    this.#sessions.clear();
    for (const sessionId of [...this.#lookups.keys()]) this.#outdate(sessionId);
    for (let from = 0; from < known.length; from += RECHECKED_AT_ONCE) {
      await Promise.all(
        known.slice(from, from + RECHECKED_AT_ONCE).map(async (sessionId) => {
          if (await this.#session(sessionId) === null) this.#tell({ sessionId });
        }),
      );
    }
  }

  async #session(sessionId: string): Promise<OpenedSession | null> {
    for (;;) {
      const known = this.#sessions.get(sessionId);
      if (known) {
        this.#remember(known);
        return known;
      }
      const lookup = this.#lookups.get(sessionId) ?? this.#lookUp(sessionId);
      const session = await lookup.session;
      if (!lookup.outdated) return session;
    }
  }

  #lookUp(sessionId: string): Lookup {
    const lookup: Lookup = {
      outdated: false,
      session: this.#calls.query(system.findSession, { sessionId }).then((session) => {
        if (session !== null && !lookup.outdated) this.#remember(session);
        return session;
      }).finally(() => {
        if (!lookup.outdated) this.#lookups.delete(sessionId);
      }),
    };
    this.#lookups.set(sessionId, lookup);
    return lookup;
  }

  #remember(session: OpenedSession): void {
    this.#sessions.delete(session.sessionId);
    this.#sessions.set(session.sessionId, session);
    if (this.#sessions.size <= authLimits.cachedSessionsMax) return;
    const [oldest] = this.#sessions.keys();
    if (oldest !== undefined) this.#sessions.delete(oldest);
  }

  #sessionChanged({ id, doc }: DocumentChange): void {
    // Looked up again when it is next asked for.
    this.#sessions.delete(id);
    this.#outdate(id);
    if (doc === null) this.#tell({ sessionId: id });
  }

  #ownerDeleted(kind: "user" | "admin", ownerId: string): void {
    for (const { sessionId, userId, adminId } of this.#sessions.values()) {
      if (ownerId === (kind === "user" ? userId : adminId)) this.#sessions.delete(sessionId);
    }
    // Whose sessions are being looked up is not known yet.
    for (const sessionId of [...this.#lookups.keys()]) this.#outdate(sessionId);
    this.#tell({ principal: `${kind}:${ownerId}` });
  }

  #outdate(sessionId: string): void {
    const lookup = this.#lookups.get(sessionId);
    if (!lookup) return;
    lookup.outdated = true;
    this.#lookups.delete(sessionId);
  }

  #tell(ended: EndedSession): void {
    for (const listener of this.#listeners) listener(ended);
  }
}
