/** First step of a request: normalizes its path, and checks host and origin, whose headers an upgrade removes. */
import { isIP } from "node:net";
import type { ServeConfig } from "../../config/config.ts";
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import { normalRequest, requestPath } from "../../kit/http_request.ts";
import type { Log } from "../../kit/log.ts";

/** A host with an optional port (RFC 9112). */
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._~-]+))(?::\d{0,5})?$/;

/** Longest DNS name, with a port. */
const HOST_CHARS_MAX = 262;

/** Cached decisions: most requests use the same few hosts. */
const CHECKED_MAX = 256;

export type HostCheck = "accepted" | "refused" | "malformed";

/** Checks `Host` headers against DNS rebinding: only they distinguish a page whose name resolves to this server. */
export class HostGuard {
  readonly #names: readonly string[];
  readonly #checked = new Map<string, HostCheck>();

  /** `names` are without ports; `*.example.com` matches all subdomains. */
  constructor(names: readonly string[]) {
    this.#names = [...names, "localhost", "*.localhost"];
  }

  check(host: string): HostCheck {
    const known = this.#checked.get(host);
    if (known !== undefined) return known;
    const result = host.length > HOST_CHARS_MAX ? "malformed" : this.#checkNew(host);
    if (this.#checked.size >= CHECKED_MAX) this.#checked.clear();
    if (host.length <= HOST_CHARS_MAX) this.#checked.set(host, result);
    return result;
  }

  #checkNew(host: string): HostCheck {
    const name = hostName(host);
    if (name === null) return "malformed";
    // Addresses are not resolved, so rebinding cannot affect them.
    if (isIP(name) !== 0) return "accepted";
    const is = (accepted: string) =>
      accepted.startsWith("*.") ? name.endsWith(accepted.slice(1)) : name === accepted;
    return this.#names.some(is) ? "accepted" : "refused";
  }
}

/** Name or address in a `Host` header: lower case, without port, brackets and trailing dot. `null` if not valid. */
function hostName(host: string): string | null {
  if (!HOST.test(host)) return null;
  const hostname = URL.parse(`http://${host}/`)?.hostname;
  if (hostname === undefined || hostname === "") return null;
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

/**
 * Restricts the pages that may use `/api` to the origins of `--allow-origin`. By default any page may use it: credentials
 * are tokens, which browsers do not send by themselves, and there are no cookies. On a private network, where reachability
 * is the credential, foreign pages must be kept out, WebSockets included.
 */
export interface OriginGuardOptions {
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

type Answer = Response | Promise<Response>;

export interface AcceptedRequest {
  /** With a normalized path. */
  readonly request: Request;
  readonly path: string;
  /** Restricts the CORS headers of the response to the page's origin. */
  readonly finish: (answer: Answer) => Answer;
}

/** Maximum number of refused hosts to log, each once. */
const HOSTS_LOGGED_MAX = 20;

/** Load balancers request these with their own host names; they expose no stored data. */
const FOR_ANY_HOST = new Set(["/api/health", "/api/health/ready"]);

export class RequestGate {
  readonly #hosts: HostGuard;
  /** `null`: pages of any origin may use the API. */
  readonly #origins: OriginGuard | null;
  readonly #log: Log;
  readonly #logged = new Set<string>();

  constructor(
    { host, publicUrl, allowedHosts, allowedOrigins }: Pick<
      ServeConfig,
      "host" | "publicUrl" | "allowedHosts" | "allowedOrigins"
    >,
    log: Log,
  ) {
    const own = publicUrl === null ? null : hostName(new URL(publicUrl).host);
    const listening = hostName(host);
    this.#hosts = new HostGuard([own, listening, ...allowedHosts].filter((name) => name !== null));
    this.#origins = allowedOrigins === null ? null : new OriginGuard({ allowed: allowedOrigins, publicUrl });
    this.#log = log;
  }

  /**
   * Returns the request, normalized, or a refusal: 400, 421 (host), 403 (origin). `forwarded`: by a process that has checked
   * the host.
   */
  check(
    given: Request,
    { forwarded = false }: { readonly forwarded?: boolean } = {},
  ): AcceptedRequest | Response {
    const host = given.headers.get("host") || authorityOf(given.url);
    const result = forwarded ? "accepted" : this.#hosts.check(host);
    if (result === "malformed" || (!forwarded && authorityOf(given.url) !== host)) {
      return errorResponse(new ServiceError("bad_request", "The Host header is not valid"));
    }
    const request = normalRequest(given);
    if (request === null) {
      return errorResponse(new ServiceError("bad_request", "The path of the request is not valid"));
    }
    const path = requestPath(request);
    if (result === "refused" && !FOR_ANY_HOST.has(path)) return this.#refuseHost(hostName(host) ?? host);
    const origin = this.#origins === null || !isApi(path) ? null : given.headers.get("origin");
    if (this.#origins?.refuses(origin, host) === true) {
      return errorResponse(new ServiceError("origin_not_allowed"));
    }
    return { request, path, finish: (answer) => narrowed(answer, origin) };
  }

  #refuseHost(name: string): Response {
    const message = `This server is not set up for the host ${name}: start it with --allow-host ${name}, ` +
      "or with --public-url if that is its address";
    if (this.#logged.size < HOSTS_LOGGED_MAX && !this.#logged.has(name)) {
      this.#logged.add(name);
      this.#log("warn", "Request refused: the host is not configured with --allow-host or --public-url", {
        code: "option",
        host: name,
      });
    }
    return errorResponse(new ServiceError("host_not_allowed", message));
  }
}

export function isApi(path: string): boolean {
  return path === "/api" || path.startsWith("/api/");
}

/** Keeps the host name of a request to this machine, which has several; otherwise returns `own`. */
export function localOrigin({ url }: Pick<Request, "url">, own: string): string {
  const name = hostName(authorityOf(url)) ?? "";
  return /^(?:localhost|127(?:\.\d+){3}|::1)$/.test(name) ? new URL(url).origin : own;
}

function authorityOf(url: string): string {
  const start = url.indexOf("://") + 3;
  const end = url.indexOf("/", start);
  return end === -1 ? url.slice(start) : url.slice(start, end);
}

/** Restricts a wildcard CORS header to one origin. */
function narrowed(answer: Answer, origin: string | null): Answer {
  if (origin === null) return answer;
  return answer instanceof Promise
    ? answer.then((response) => narrow(response, origin))
    : narrow(answer, origin);
}

function narrow(response: Response, origin: string): Response {
  // Handshake responses have no such header and must not be modified. Forwarded ones are restricted already.
  if (response.headers.get("access-control-allow-origin") !== "*") return response;
  response.headers.set("Access-Control-Allow-Origin", origin);
  response.headers.append("Vary", "Origin");
  return response;
}
