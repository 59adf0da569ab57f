/**
 * The tokens of the signed-in account: stored where all tabs can read them, refreshed by one tab at a time. A refresh token
 * works once, so two tabs that refresh at the same time would sign each other out.
 */
import { tokenLife } from "./access_token.ts";
import type { Tokens } from "./account_calls.ts";
import { AccountError, type CallAccounts } from "./account_calls.ts";
import { Alarm, type Clock, within } from "../clock.ts";
import * as clientLimits from "../limits.ts";
import { randomUuid } from "../random_uuid.ts";
import type { Tabs } from "./tabs.ts";

/** Stores tokens. Compatible with `localStorage`; may be asynchronous. */
export interface TokenStorage {
  getItem(key: string): string | null | Promise<string | null>;
  setItem(key: string, value: string): void | Promise<void>;
  removeItem(key: string): void | Promise<void>;
}

/** Dependencies of the session. */
export interface AccountSessionParts {
  readonly call: CallAccounts;
  readonly storage: TokenStorage;
  readonly tabs: Tabs;
  /** Key of the stored tokens. */
  readonly key: string;
  readonly clock: Clock;
}

/** Added to the key of the tokens: the key of the id of their next refresh. */
export const ATTEMPT_KEY = " attempt";

const ATTEMPT_ID = /^[\da-f-]{36}$/;

export class AccountSession {
  readonly #parts: AccountSessionParts;
  /** The access token last passed to the connection. If another one is stored at a forced refresh, that one is used. */
  #given: string | null = null;

  constructor(parts: AccountSessionParts) {
    this.#parts = parts;
  }

  async load(): Promise<Tokens | null> {
    const text = await this.#parts.storage.getItem(this.#parts.key);
    return text === null ? null : parseTokens(text);
  }

  async save(tokens: Tokens): Promise<void> {
    const { accessToken, refreshToken, userId } = tokens;
    await this.#parts.storage.setItem(this.#parts.key, JSON.stringify({ accessToken, refreshToken, userId }));
    await this.#parts.storage.removeItem(this.#attemptKey);
    this.#parts.tabs.announce();
  }

  async clear(): Promise<void> {
    await this.#parts.storage.removeItem(this.#parts.key);
    await this.#parts.storage.removeItem(this.#attemptKey);
    this.#parts.tabs.announce();
  }

  /** The token getter for `setAuth`. Rejects if the server is unreachable, so that it is called again later. */
  readonly fetchToken = async (
    { forceRefresh }: { readonly forceRefresh: boolean },
  ): Promise<string | null> => {
    const seen = await this.load();
    const token = seen === null
      ? null
      : this.#willDo(seen, { forceRefresh })
      ? seen.accessToken
      : await this.#parts.tabs.alone(() => this.#renew(seen));
    this.#given = token;
    return token;
  };

  #willDo({ accessToken }: Tokens, { forceRefresh }: { readonly forceRefresh: boolean }): boolean {
    if (forceRefresh && (this.#given === null || accessToken === this.#given)) return false;
    return !this.#isEnding(accessToken);
  }

  #isEnding(accessToken: string): boolean {
    const life = tokenLife(accessToken, this.#parts.clock.now());
    return life !== null && life.leftMs <= Math.min(clientLimits.tokenRefreshLeadMs, life.fullMs / 2);
  }

  /** Refreshes the tokens unless another tab did while this one waited for the lock. */
  async #renew(seen: Tokens): Promise<string | null> {
    const stored = await this.load();
    if (stored === null) return null;
    if (stored.refreshToken !== seen.refreshToken) return stored.accessToken;
    let renewed: Tokens;
    try {
      renewed = await this.#refresh({
        refreshToken: stored.refreshToken,
        attemptId: await this.#attemptId(),
      }) as Tokens;
    } catch (error) {
      return await this.#afterRefusal(stored, error);
    }
    const now = await this.load();
    // The user signed out or in as another user in the meantime: use what is stored now.
    if (now?.refreshToken !== stored.refreshToken) return now?.accessToken ?? null;
    await this.save(renewed);
    return renewed.accessToken;
  }

  /**
   * Requests new tokens, with one repetition if there is no response. A late response to the first request still counts: both
   * requests have the same attempt id, so the server returns the same tokens.
   */
  async #refresh(body: { readonly refreshToken: string; readonly attemptId: string }): Promise<unknown> {
    const { call, clock } = this.#parts;
    const again = new Alarm(clock);
    try {
      return await within(
        { clock, timeoutMs: clientLimits.refreshMs },
        (signal) =>
          new Promise((resolve, reject) => {
            const ask = () => void call("refresh", body, { signal }).then(resolve, reject);
            again.set(clientLimits.refreshAgainMs, ask);
            ask();
          }),
      );
    } finally {
      again.clear();
    }
  }

  /**
   * The attempt id of the next refresh. It is stored until new tokens arrive: if the response is lost, even together with the
   * page, the next request gets the same tokens instead of being treated as token reuse.
   */
  async #attemptId(): Promise<string> {
    const { storage } = this.#parts;
    const known = await storage.getItem(this.#attemptKey);
    if (known !== null && ATTEMPT_ID.test(known)) return known;
    const attemptId = randomUuid();
    await storage.setItem(this.#attemptKey, attemptId);
    return attemptId;
  }

  get #attemptKey(): string {
    return this.#parts.key + ATTEMPT_KEY;
  }

  async #afterRefusal(used: Tokens, error: unknown): Promise<string | null> {
    const stored = await this.load();
    if (stored?.refreshToken !== used.refreshToken) return stored?.accessToken ?? null;
    // Any other error may be temporary: an unreachable or busy server, or a token another tab has just refreshed.
    const isFinal = error instanceof AccountError && error.status === 401 &&
      error.code !== "stale_refresh_token";
    if (!isFinal) throw error;
    await this.clear();
    return null;
  }
}

/** Returns stored tokens; `null` for other content. */
export function parseTokens(text: string): Tokens | null {
  try {
    const { accessToken, refreshToken, userId } = (JSON.parse(text) ?? {}) as Partial<Tokens>;
    if (typeof accessToken !== "string" || typeof refreshToken !== "string") return null;
    return { accessToken, refreshToken, ...typeof userId === "string" && { userId } };
  } catch {
    // Unrelated content stored under this key.
    return null;
  }
}
