/**
 * Which pages may use `/api` when the operator has named them (`--allow-origin`). Without that any page may: credentials
 * are tokens, which no browser sends by itself, and cookies play no part. A server that people reach because of where they
 * are, in an office or at home, has data for everybody there; pages from elsewhere are then to be kept out, sockets
 * included, which browsers open to any address.
 */
export interface OriginGuardOptions {
  /** Origins of pages beside the server's own. */
  readonly allowed: readonly string[];
  /** Address of this server for browsers; `null`: the one a request names. */
  readonly publicUrl: string | null;
}

export class OriginGuard {
  readonly #allowed: ReadonlySet<string>;
  readonly #publicOrigin: string | null;

  constructor({ allowed, publicUrl }: OriginGuardOptions) {
    this.#allowed = new Set(allowed);
    this.#publicOrigin = publicUrl === null ? null : new URL(publicUrl).origin;
  }

  /** Whether a request to `host` is from a page that may not use the API; `null` is no page. */
  refuses(origin: string | null, host: string): boolean {
    return origin !== null && !this.#allowed.has(origin) && !this.#isOwn(origin, host);
  }

  #isOwn(origin: string, host: string): boolean {
    if (this.#publicOrigin !== null) return origin === this.#publicOrigin;
    // A proxy that terminates TLS in front of this server speaks plain HTTP to it, with the host that the browser used.
    const page = URL.parse(origin);
    // The host in the same form: lower case, without the port that the page's scheme implies.
    return page !== null && page.host !== "" && page.host === URL.parse(`${page.protocol}//${host}`)?.host;
  }
}
