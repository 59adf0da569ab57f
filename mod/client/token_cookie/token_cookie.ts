/** Stores tokens as usual, with a copy of the access token in a cookie of the page. */
import { ATTEMPT_KEY, parseTokens, type TokenStorage } from "../accounts/account_session.ts";
import { tokenLife } from "../accounts/access_token.ts";
import { platformStorage } from "../accounts/accounts.ts";

export interface TokenCookieOptions {
  /** Name of the cookie. Default: `syncline-token`. */
  readonly name?: string;
  /** Stores the tokens themselves. Default: that of the option `accounts.storage`. */
  readonly storage?: TokenStorage;
}

/**
 * Returns a token storage for the option `accounts.storage` that also sets a cookie with the access token. The cookie expires with the
 * token. Requests from other sites do not contain it, except when a user follows a link. Cookies ignore the port: every server and path
 * on the page's host receives it. The refresh token is in no cookie. Without a page, such as during server rendering, it sets none.
 *
 * Use the token only to render pages. A server that also changes data must not rely on a cookie alone.
 *
 * @example
 * ```ts
 * export const client = new SynclineClient(url, { accounts: { storage: tokenCookie() } });
 * ```
 */
export function tokenCookie(
  { name = "syncline-token", storage = platformStorage() }: TokenCookieOptions = {},
): TokenStorage {
  const { document, location } = globalThis as { document?: { cookie: string }; location?: Location };
  /** Sets the cookie to the access token of stored tokens, and removes it if there are none. */
  const copy = (key: string, stored: string | null) => {
    if (document === undefined || key.endsWith(ATTEMPT_KEY)) return;
    const accessToken = parseTokens(stored ?? "")?.accessToken ?? "";
    const leftMs = tokenLife(accessToken, Date.now())?.leftMs ?? 0;
    const secure = location?.protocol === "https:" ? "; Secure" : "";
    document.cookie = `${name}=${accessToken}; Path=/; SameSite=Lax; Max-Age=${
      Math.max(0, Math.floor(leftMs / 1000))
    }${secure}`;
  };
  return {
    async getItem(key) {
      const stored = await storage.getItem(key);
      copy(key, stored);
      return stored;
    },
    async setItem(key, value) {
      await storage.setItem(key, value);
      copy(key, value);
    },
    async removeItem(key) {
      await storage.removeItem(key);
      copy(key, null);
    },
  };
}
