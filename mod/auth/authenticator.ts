/** Verifies access tokens and reports ended sessions, in the tick that publishes the deletion of their row. */
import type { CommitEntry, DocumentChange } from "../engine/types.ts";
import type { AdminRole } from "../functions/admin_roles.ts";
import type { Identity } from "../functions/identity.ts";
import { RowCache } from "../kit/row_cache.ts";
import { authLimits } from "./limits.ts";
import { type ApiKeyVerifier, isApiKey } from "./api_keys/api_keys.ts";
import type { AccessTokenError, AccessTokens } from "./tokens/access_token.ts";
import type { ExternalRefusal, ExternalTokens } from "./issuers/mod.ts";
import type { OpenedSession } from "./isolate_functions/session_rows.ts";
import { system, type SystemCalls } from "./system_calls.ts";

/** Reasons to refuse a token: the contract's `AuthError` texts. */
export type TokenRefusal = AccessTokenError | "session has ended" | ExternalRefusal;

export type TokenVerification =
  | {
    readonly ok: true;
    readonly identity: Identity;
    /** Milliseconds since the epoch; `null` for an API key that does not expire. */
    readonly expiresAt: number | null;
  }
  | { readonly ok: false; readonly error: TokenRefusal };

/** A session that ended, or a principal whose credentials have ended: all, or only those without a session. */
export type EndedSession =
  | { readonly sessionId: string }
  | { readonly principal: string; readonly withoutSession?: boolean };

export interface AccountAuthenticatorOptions {
  readonly accessTokens: AccessTokens;
  readonly external: ExternalIssuers;
  readonly apiKeys: ApiKeyVerifier;
  readonly calls: SystemCalls;
  /** Resolves when commits made elsewhere are applied here, or after a timeout; absent if there are none elsewhere. */
  readonly caughtUp?: (() => Promise<void>) | undefined;
  readonly now: () => number;
}

/** Verifier of external tokens, which also reports whose credentials have ended. */
export type ExternalIssuers = Pick<ExternalTokens, "applyCommits" | "recheck"> & {
  verify(token: string): Promise<TokenVerification>;
};

/** Maximum number of sessions looked up concurrently. */
const RECHECKED_AT_ONCE = 256;

export class AccountAuthenticator {
  readonly #accessTokens: AccessTokens;
  readonly #external: ExternalIssuers;
  readonly apiKeys: ApiKeyVerifier;
  readonly #calls: AccountAuthenticatorOptions["calls"];
  readonly #caughtUp: (() => Promise<void>) | undefined;
  readonly #now: () => number;
  readonly #listeners: ((ended: EndedSession) => void)[] = [];
  readonly #sessions: RowCache<OpenedSession>;

  constructor({ accessTokens, external, apiKeys, calls, caughtUp, now }: AccountAuthenticatorOptions) {
    this.#accessTokens = accessTokens;
    this.#external = external;
    this.apiKeys = apiKeys;
    this.#calls = calls;
    this.#caughtUp = caughtUp;
    this.#now = now;
    this.#sessions = new RowCache({
      rowsMax: authLimits.cachedSessionsMax,
      idOf: ({ sessionId }) => sessionId,
      load: (sessionId) => calls.query(system.findSession, { sessionId }),
    });
  }

  /**
   * Checks signature, claims, expiry and session. Tokens other than `HS256` must come from a configured issuer. Accepts API keys.
   * `client` is the sender, whose unknown keys are limited. Throws `RateLimitedError`.
   */
  async verify(token: string, client = "local"): Promise<TokenVerification> {
    if (isApiKey(token)) return await this.apiKeys.verify(token, client);
    const checked = await this.#accessTokens.verify(token, this.#now());
    if (checked === null) return await this.#external.verify(token);
    if (!checked.ok) return checked;
    const { sub, sid, adm = false, exp } = checked.claims;
    const session = await this.#sessions.find(sid) ?? await this.#findLate(sid);
    const owner = adm ? session?.adminId : session?.userId;
    if (!session || owner !== sub || session.expiresAt <= this.#now()) {
      return { ok: false, error: "session has ended" };
    }
    const { userId, adminId } = session;
    const identity = { principal: `${adm ? "admin" : "user"}:${sub}`, userId, adminId, sessionId: sid };
    return { ok: true, identity, expiresAt: exp * 1000 };
  }

  /** Returns the session named by a genuine token of this server, even an expired one; otherwise `null`. */
  async sessionNamedBy(token: string): Promise<string | null> {
    const opened = await this.#accessTokens.open(token);
    return opened?.ok ? opened.claims.sid : null;
  }

  /** Whether the caller is an administrator with an active session. */
  async isLiveAdmin({ adminId, sessionId }: Identity): Promise<boolean> {
    if (adminId === null || sessionId === null) return false;
    const session = await this.#sessions.find(sessionId);
    return session !== null && session.adminId === adminId && session.expiresAt > this.#now();
  }

  /** Returns the role of an administrator with an active session; `null` for all other callers. */
  async adminRole(identity: Identity): Promise<AdminRole | null> {
    const { adminId } = identity;
    if (adminId === null || !await this.isLiveAdmin(identity)) return null;
    return await this.#calls.query(system.adminRole, { adminId });
  }

  /** Whether the caller's session is active; true for callers without a session unless their credentials ended. */
  async isLive({ key, principal, sessionId }: Identity): Promise<boolean> {
    if (sessionId === null) return true;
    if (key !== undefined) return await this.apiKeys.isLive(sessionId);
    const session = await this.#sessions.find(sessionId);
    if (session === null || session.expiresAt <= this.#now()) return false;
    return principal === `user:${session.userId}` || principal === `admin:${session.adminId}`;
  }

  /** Handles credentials that ended on the leader and are not visible in local commits. */
  endedElsewhere(ended: EndedSession): void {
    this.#report(ended);
  }

  /** Calls the listener in the tick in which the end of a session becomes known. */
  onSessionEnd(listener: (ended: EndedSession) => void): void {
    this.#listeners.push(listener);
  }

  /** Applies commits. Call with each group, in order. */
  applyCommits(entries: readonly CommitEntry[]): void {
    for (const sessionId of this.apiKeys.applyCommits(entries)) this.#report({ sessionId });
    for (const principal of this.#external.applyCommits(entries)) {
      this.#report({ principal, withoutSession: true });
    }
    for (const { changes } of entries) {
      for (const change of changes) {
        if (change.table === "_sessions") this.#sessionChanged(change);
        else if (change.doc === null && change.table === "_users") this.#ownerDeleted("user", change.id);
        else if (change.doc === null && change.table === "_admins") this.#ownerDeleted("admin", change.id);
      }
    }
  }

  /** Looks up all cached sessions again after commits may have been missed, and reports those that ended. */
  async recheck(): Promise<void> {
    const known = [...this.#sessions.rows()].map(({ sessionId }) => sessionId);
    this.#sessions.clear();
    for (let from = 0; from < known.length; from += RECHECKED_AT_ONCE) {
      await Promise.all(
        known.slice(from, from + RECHECKED_AT_ONCE).map(async (sessionId) => {
          if (await this.#sessions.find(sessionId) === null) this.#report({ sessionId });
        }),
      );
    }
    for (const sessionId of await this.apiKeys.recheck()) this.#report({ sessionId });
    for (const principal of await this.#external.recheck()) {
      this.#report({ principal, withoutSession: true });
    }
  }

  /** A session that is unknown here may have just started on another server. */
  async #findLate(sessionId: string): Promise<OpenedSession | null> {
    if (this.#caughtUp === undefined) return null;
    await this.#caughtUp();
    return await this.#sessions.find(sessionId);
  }

  #sessionChanged({ id, doc }: DocumentChange): void {
    // Looked up again at the next use.
    this.#sessions.invalidate(id);
    if (doc === null) this.#report({ sessionId: id });
  }

  #ownerDeleted(kind: "user" | "admin", ownerId: string): void {
    for (const { sessionId, userId, adminId } of [...this.#sessions.rows()]) {
      if (ownerId === (kind === "user" ? userId : adminId)) this.#sessions.invalidate(sessionId);
    }
    // The owner of a session that is being looked up is not known yet.
    this.#sessions.invalidateLookups();
    this.#report({ principal: `${kind}:${ownerId}` });
  }

  #report(ended: EndedSession): void {
    for (const listener of this.#listeners) listener(ended);
  }
}
