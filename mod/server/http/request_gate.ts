/**
 * First step of every request: normalizes its path and checks its host and origin. The headers are read here once, because
 * they are not available after an upgrade.
 */
import type { ServeConfig } from "../../config/config.ts";
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import type { Log } from "../../kit/log.ts";
import { normalRequest, requestPath } from "../../kit/request_path.ts";
import { HostGuard, hostName } from "./host_guard.ts";
import { OriginGuard } from "./origin_guard.ts";

type Answer = Response | Promise<Response>;

/** An accepted request. */
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
   * Returns the normalized request, or the response that refuses it: 400, 421 for its host, 403 for its origin. `passedOn`:
   * another process has forwarded it and checked its host.
   */
  check(
    given: Request,
    { passedOn = false }: { readonly passedOn?: boolean } = {},
  ): AcceptedRequest | Response {
    const host = given.headers.get("host") || authorityOf(given.url);
    const judgement = passedOn ? "accepted" : this.#hosts.judge(host);
    if (judgement === "malformed" || (!passedOn && authorityOf(given.url) !== host)) {
      return errorResponse(new ServiceError("bad_request", "The Host header is not valid"));
    }
    const request = normalRequest(given);
    if (request === null) {
      return errorResponse(new ServiceError("bad_request", "The path of the request is not valid"));
    }
    const path = requestPath(request);
    if (judgement === "refused" && !FOR_ANY_HOST.has(path)) return this.#refuseHost(hostName(host) ?? host);
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

/** Whether a normalized path belongs to the API. */
export function isApi(path: string): boolean {
  return path === "/api" || path.startsWith("/api/");
}

/** Keeps the host name of a request to this machine, which has several; otherwise returns `own`. */
export function localOrigin({ url }: Pick<Request, "url">, own: string): string {
  const name = hostName(authorityOf(url)) ?? "";
  return /^(?:localhost|127(?:\.\d+){3}|::1)$/.test(name) ? new URL(url).origin : own;
}

/** The authority of a URL: host and port. */
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
  // Handshake responses have no such header and must not be modified.
  if (!response.headers.has("access-control-allow-origin")) return response;
  response.headers.set("Access-Control-Allow-Origin", origin);
  response.headers.append("Vary", "Origin");
  return response;
}
