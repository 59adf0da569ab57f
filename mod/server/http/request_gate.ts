/**
 * The entrance of every request: gives it one path, and refuses it where its host or its page may not use this server.
 * What it decides by is read here, once. An upgraded request has no headers to read any more.
 */
import type { ServeConfig } from "../../config/config.ts";
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import type { Log } from "../../kit/log.ts";
import { normalRequest, requestPath } from "../../kit/request_path.ts";
import { HostGuard, hostName } from "./host_guard.ts";
import { OriginGuard } from "./origin_guard.ts";

type Answer = Response | Promise<Response>;

/** A request that may be answered. */
export interface Admitted {
  /** With its path in normal form. */
  readonly request: Request;
  readonly path: string;
  /** The answer as its page may read it. */
  readonly finish: (answer: Answer) => Answer;
}

/** Refused hosts that the log names, each once. */
const HOSTS_LOGGED_MAX = 20;

/** Load balancers ask these by names of their own, and they show nothing of what is stored. */
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
   * Gives the request as it is to be answered, or the answer that refuses it: 400, 421 for its host, 403 for its origin.
   * `passedOn`: another process has taken it from its client, and has judged its host.
   */
  admit(given: Request, { passedOn = false }: { readonly passedOn?: boolean } = {}): Admitted | Response {
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
      this.#log("warn", "Request refused: its host is not among those of --allow-host and --public-url", {
        code: "option",
        host: name,
      });
    }
    return errorResponse(new ServiceError("host_not_allowed", message));
  }
}

/** Whether a path in normal form is one of the API. */
export function isApi(path: string): boolean {
  return path === "/api" || path.startsWith("/api/");
}

/** Without a public URL this server is one for this machine, which has several names: the one in use is kept. */
export function localOrigin({ url }: Pick<Request, "url">, own: string): string {
  const name = hostName(authorityOf(url)) ?? "";
  return /^(?:localhost|127(?:\.\d+){3}|::1)$/.test(name) ? new URL(url).origin : own;
}

/** The part of a request's URL that names the server. */
function authorityOf(url: string): string {
  const start = url.indexOf("://") + 3;
  const end = url.indexOf("/", start);
  return end === -1 ? url.slice(start) : url.slice(start, end);
}

/** Says of an answer which page it is for, where it says that it is for any. */
function narrowed(answer: Answer, origin: string | null): Answer {
  if (origin === null) return answer;
  return answer instanceof Promise
    ? answer.then((response) => narrow(response, origin))
    : narrow(answer, origin);
}

function narrow(response: Response, origin: string): Response {
  // The answer to a handshake has none of these headers, and must stay as it is.
  if (!response.headers.has("access-control-allow-origin")) return response;
  response.headers.set("Access-Control-Allow-Origin", origin);
  response.headers.append("Vary", "Origin");
  return response;
}
