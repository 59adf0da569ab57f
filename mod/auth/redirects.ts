/** Where links in mails and sign-ins may lead: an allowlist of app URLs (RD). */
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
  /** Entries of `--auth-redirect-url`; the first one is used when a request names none. */
  readonly allowed: readonly string[];
  /** Whether http URLs of this machine are allowed too. */
  readonly dev: boolean;
  /** What is used when a request names none and there is no entry, such as the server's own page. */
  readonly fallback: () => string;
}

/** Checks redirect URLs. A URL that does not match is refused, never replaced. */
export class Redirects {
  #allowed: readonly URL[];
  readonly #dev: boolean;
  readonly #fallback: () => string;

  /** Throws `TypeError` for an entry that cannot be one. */
  constructor({ allowed, dev, fallback }: RedirectOptions) {
    this.#allowed = allowed.map(parseEntry);
    this.#dev = dev;
    this.#fallback = fallback;
  }

  /** From now on these are the entries. Throws `TypeError` for one that cannot be, and changes nothing then. */
  allow(entries: readonly string[]): void {
    this.#allowed = entries.map(parseEntry);
  }

  /** The URL to use for a request's `redirectTo`, without fragment. Throws `invalid_redirect`. */
  resolve(redirectTo: string | undefined): string {
    if (redirectTo === undefined) return this.#allowed[0]?.href ?? this.#fallback();
    const url = parseRedirect(redirectTo);
    if (url === null || !this.#allows(url)) throw new ServiceError("invalid_redirect");
    return url.href;
  }

  #allows(url: URL): boolean {
    const entry = this.#allowed.find(({ protocol, host, pathname }) =>
      url.protocol === protocol && url.host === host && pathWithin(url.pathname, pathname)
    );
    if (entry) return true;
    return this.#dev && url.protocol === "http:" && isLoopback(url.hostname);
  }
}

/** Adds a value to a URL as its fragment, where servers and their logs do not see it. */
export function withFragment(url: string, values: Readonly<Record<string, string>>): string {
  const result = new URL(url);
  result.hash = new URLSearchParams(values).toString();
  return result.href;
}

/** Checks one entry of the allowlist. Throws `TypeError` with what is wrong. */
export function parseEntry(text: string): URL {
  const url = parseRedirect(text);
  if (url === null) {
    throw new TypeError(
      `Cannot allow redirects to "${text}": give a URL such as https://app.example.com/path, without user, dots or backslashes`,
    );
  }
  url.search = "";
  return url;
}

/**
 * A URL whose meaning does not depend on who parses it, or `null`: browsers, proxies and apps disagree on user parts,
 * backslashes, encoded slashes and dots, so none of them is taken.
 */
function parseRedirect(text: string): URL | null {
  if (text.length > authLimits.redirectCharsMax) return null;
  // deno-lint-ignore no-control-regex -- control characters are what is looked for
  if (/[\s\\\x00-\x1f\x7f]/.test(text)) return null;
  // An absolute URL with exactly two slashes: "https:/a" and "https:///a" are read differently by different parsers.
  // Apps on phones have schemes of their own.
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

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d+){3}$/.test(hostname);
}
