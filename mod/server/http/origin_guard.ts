/**
 * Restricts the pages that may use `/api` to the origins of `--allow-origin`. By default any page may use it: credentials
 * are tokens, which browsers do not send by themselves, and there are no cookies. On a private network, where reachability
 * is the credential, foreign pages must be kept out, WebSockets included.
 */
export interface OriginGuardOptions {
  /** Allowed origins besides the server's own. */
  readonly allowed: readonly string[];
  /** URL of this server for browsers; `null`: the one that a request names. */
  readonly publicUrl: string | null;
}

export class OriginGuard {
  readonly #allowed: ReadonlySet<string>;
  readonly #publicOrigin: string | null;

  constructor({ allowed, publicUrl }: OriginGuardOptions) {
    this.#allowed = new Set(allowed);
    this.#publicOrigin = publicUrl === null ? null : new URL(publicUrl).origin;
  }

  /** Whether a request to `host` comes from a page that may not use the API. `null`: not from a page. */
  refuses(origin: string | null, host: string): boolean {
    return origin !== null && !this.#allowed.has(origin) && !this.#isOwn(origin, host);
  }

  #isOwn(origin: string, host: string): boolean {
    if (this.#publicOrigin !== null) return origin === this.#publicOrigin;
    // A proxy that terminates TLS forwards plain HTTP with the browser's host.
    const page = URL.parse(origin);
    // Normalizes the host: lower case, without the default port of the page's scheme.
    return page !== null && page.host !== "" && page.host === URL.parse(`${page.protocol}//${host}`)?.host;
  }
}
