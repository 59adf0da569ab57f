/** Redirect URLs of mail links and sign-ins: an allowlist of app URLs (RD). */
import { authLimits } from "./limits.ts";
import { ServiceError } from "../errors.ts";

const SCRIPT_SCHEMES = new Set([
  "javascript:",
  "data:",
  "vbscript:",
  "file:",
  "blob:",
  "about:",
  "filesystem:",
]);

export interface RedirectOptions {
  /** Entries of `--auth-redirect-url`; the first one is the default. */
  readonly allowed: readonly string[];
  /** Whether http URLs of this machine are also allowed. */
  readonly dev: boolean;
  /** Default without entries, such as the server's own page. */
  readonly fallback: () => string;
}

/** Checks redirect URLs. A URL that does not match is refused, never replaced. */
export class Redirects {
  #allowed: readonly URL[];
  readonly #dev: boolean;
  readonly #fallback: () => string;

  /** Throws `TypeError` for an invalid entry. */
  constructor({ allowed, dev, fallback }: RedirectOptions) {
    this.#allowed = allowed.map(parseEntry);
    this.#dev = dev;
    this.#fallback = fallback;
  }

  /** Replaces the entries. Throws `TypeError` for an invalid entry without changing anything. */
  allow(entries: readonly string[]): void {
    this.#allowed = entries.map(parseEntry);
  }

  /** Returns the URL to use for a request's `redirectTo`, without fragment. Throws `invalid_redirect`. */
  resolve(redirectTo: string | undefined): string {
    if (redirectTo === undefined) return this.#allowed[0]?.href ?? this.#fallback();
    const url = parseRedirect(redirectTo);
    if (url === null || !this.#allows(url)) throw new ServiceError("invalid_redirect");
    return url.href;
  }

  /** Whether pages of an origin may receive the results of sign-ins. */
  allowsOrigin(origin: string): boolean {
    if (this.#allowed.some(({ protocol, host }) => origin === `${protocol}//${host}`)) return true;
    const url = URL.parse(origin);
    return this.#dev && url?.protocol === "http:" && isLoopback(url.hostname);
  }

  #allows(url: URL): boolean {
    const entry = this.#allowed.find(({ protocol, host, pathname }) =>
      url.protocol === protocol && url.host === host && pathWithin(url.pathname, pathname)
    );
    if (entry) return true;
    return this.#dev && url.protocol === "http:" && isLoopback(url.hostname);
  }
}

/** Adds a value to a URL's fragment, which servers and their logs do not see. */
export function withFragment(url: string, values: Readonly<Record<string, string>>): string {
  const result = new URL(url);
  result.hash = new URLSearchParams(values).toString();
  return result.href;
}

/** Identifies a sign-in that a client started (OA17): it accepts tokens only with this `svc_state` in the address. */
export const APP_STATE = /^[\w-]{1,128}$/;

/** Returns the values of the fragment with the state. */
export function svcState(appState: string | undefined): Readonly<Record<string, string>> {
  return appState === undefined ? {} : { svc_state: appState };
}

/** Validates an entry of the allowlist. Throws `TypeError`. */
export function parseEntry(text: string): URL {
  const url = parseRedirect(text);
  if (url === null) {
    throw new TypeError(
      `Cannot allow redirects to "${text}": expected a URL such as https://app.example.com/path, without user, dots or backslashes`,
    );
  }
  url.search = "";
  return url;
}

/** Parses a URL, or returns `null` for user info, backslashes, encoded slashes or dots: parsers disagree on these. */
function parseRedirect(text: string): URL | null {
  if (text.length > authLimits.redirectCharsMax) return null;
  // deno-lint-ignore no-control-regex -- control characters are searched for
  if (/[\s\\\x00-\x1f\x7f]/.test(text)) return null;
  // An absolute URL with exactly two slashes: parsers disagree on "https:/a" and "https:///a".
  // Mobile apps have custom schemes.
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#]/i.test(text)) return null;
  const url = URL.parse(text);
  if (url === null || url.host === "" || SCRIPT_SCHEMES.has(url.protocol)) return null;
  const [authority = "", ...path] = text.slice(text.indexOf("//") + 2).replace(/[?#].*$/, "").split("/");
  if (authority.includes("@") || authority.includes("%") || url.hostname.endsWith(".")) return null;
  if (
    path.some((segment) => /^(?:\.|%2e)*$/i.test(segment) && segment !== "") ||
    /%(?:2f|5c|00)/i.test(path.join("/"))
  ) {
    return null;
  }
  url.hash = "";
  return url;
}

function pathWithin(path: string, base: string): boolean {
  if (base === "/" || path === base) return true;
  return path.startsWith(base.endsWith("/") ? base : `${base}/`);
}

/** Whether a host name of a URL is this machine. */
export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d+){3}$/.test(hostname);
}
