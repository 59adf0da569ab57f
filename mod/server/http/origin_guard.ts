/**
 * Which pages may use `/api` when the operator has named them (`--allow-origin`). Without that any page may: credentials
 * are tokens, which no browser sends by itself, and cookies play no part. A server that people reach because of where they
 * are, in an office or at home, has data for everybody there; pages from elsewhere are then to be kept out, sockets
 * included, which browsers open to any address.
 */
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";

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

  /** The answer to a request from a page that may not use the API; `null` for all others. */
  refuse(request: Request): Response | null {
    const origin = request.headers.get("origin");
    if (origin === null || !isApi(request.url) || this.#allowed.has(origin) || this.#isOwn(origin, request)) {
      return null;
    }
    return errorResponse(new ServiceError("origin_not_allowed"));
  }

  /** Says of an answer which page it is for, where it said that it is for any. */
  narrow(request: Request, answer: Response | Promise<Response>): Response | Promise<Response> {
    const origin = request.headers.get("origin");
    if (origin === null || !isApi(request.url)) return answer;
    return answer instanceof Promise
      ? answer.then((response) => narrowed(response, origin))
      : narrowed(answer, origin);
  }

  #isOwn(origin: string, { url, headers }: Request): boolean {
    if (this.#publicOrigin !== null) return origin === this.#publicOrigin;
    // Whoever ends TLS in front of this server speaks plain HTTP to it, with the name that the browser has used.
    return URL.parse(origin)?.host === (headers.get("host") ?? new URL(url).host);
  }
}

function isApi(url: string): boolean {
  const { pathname } = new URL(url);
  return pathname === "/api" || pathname.startsWith("/api/");
}

function narrowed(response: Response, origin: string): Response {
  // The answer to a handshake has none of these headers, and must stay as it is.
  if (!response.headers.has("access-control-allow-origin")) return response;
  response.headers.set("Access-Control-Allow-Origin", origin);
  response.headers.append("Vary", "Origin");
  return response;
}
