/** Handles requests to a test server without a port, with the same handlers as a real server. */
import { Hono } from "hono";
import { ServiceError } from "../errors.ts";
import { errorResponse, failureResponse } from "../kit/error_response.ts";
import { apiHeaders, appRoutes, type AppRoutesOptions } from "../server/http/app_routes.ts";
import { type AcceptedRequest, isApi, RequestGate } from "../server/http/request_gate.ts";
import { type Authenticator, httpCalls, type HttpCallsOptions } from "../sync/mod.ts";
import { streamRoutes, type Streams } from "../streams/mod.ts";
import type { TestStorage } from "./test_storage.ts";

export interface TestHttpOptions {
  readonly host: HttpCallsOptions["host"] & Pick<AppRoutesOptions, "routes">;
  readonly hub: HttpCallsOptions["hub"];
  readonly authenticator: Authenticator;
  readonly dev: boolean;
  readonly storage: TestStorage;
  readonly streams: Streams;
  readonly gate: RequestGate;
}

/** Default headers of responses that do not come from an app route. */
const frontendHeaders = {
  "Referrer-Policy": "strict-origin-when-cross-origin",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "SAMEORIGIN",
} as const;

/** Headers of a CORS preflight response. */
const preflightHeaders = {
  "Access-Control-Allow-Origin": apiHeaders["Access-Control-Allow-Origin"],
  "Access-Control-Expose-Headers": apiHeaders["Access-Control-Expose-Headers"],
  "Access-Control-Allow-Methods": "GET,HEAD,PUT,POST,DELETE,PATCH,QUERY",
  "Access-Control-Max-Age": "7200",
} as const;

/** Handles requests like a server without a frontend: function calls, files, streams and app routes. */
export function testHttp(
  { host, hub, authenticator, dev, storage, streams, gate }: TestHttpOptions,
): (request: Request) => Promise<Response> {
  const log = (_level: string, message: string, fields: { readonly error?: unknown } = {}) => {
    throw new Error(message, { cause: fields.error });
  };
  const calls = httpCalls({ hub, host, authenticator, dev, headers: apiHeaders, log });
  const reads = {
    find: (id: string) => streams.find(id),
    readers: () => streams.readers,
    headers: apiHeaders,
  };
  const others = new Hono().route("/", calls.routes).route("/api/streams", streamRoutes(reads));
  others.notFound(() => errorResponse(new ServiceError("not_found"), apiHeaders));
  others.onError((error) => failureResponse(error, log, apiHeaders));
  const routes = appRoutes({ routes: host.routes, authenticator, dev, addressOf: () => "local" });

  async function service(request: Request, path: string): Promise<Response> {
    const called = calls.handleDirectly(request);
    if (called !== null) return await called;
    if (request.method === "OPTIONS") return preflight(request);
    if (storage.serves(path)) return withHeaders(await storage.fetch(request), apiHeaders);
    return await others.fetch(request);
  }

  async function answer({ request, path }: AcceptedRequest): Promise<Response> {
    const ofService = isApi(path);
    try {
      const answered = ofService ? service(request, path) : routes(request, NO_CONNECTION);
      if (answered !== null) return await answered;
    } catch (error) {
      return failureResponse(error, log, ofService ? apiHeaders : {});
    }
    const isFirstPage = path === "/" && (request.method === "GET" || request.method === "HEAD");
    return isFirstPage
      ? new Response(null, { status: 302, headers: { ...frontendHeaders, Location: "/_/" } })
      : errorResponse(new ServiceError("not_found"), frontendHeaders);
  }

  return async (request) => {
    // Requests of a test arrive without a port, so any host is accepted.
    const admitted = gate.check(request, { forwarded: true });
    const response = admitted instanceof Response ? admitted : await admitted.finish(answer(admitted));
    return request.method === "HEAD" && response.body !== null ? new Response(null, response) : response;
  };
}

/** Returns the entrance of a test server; `undefined` allows pages of any origin. Throws `TypeError` for an invalid origin, which would match nothing. */
export function testGate(allowed: readonly string[] | undefined): RequestGate {
  for (const origin of allowed ?? []) {
    if (URL.parse(origin)?.origin === origin) continue;
    throw new TypeError(
      `allowOrigins contains "${origin}": expected an origin such as https://app.example.com`,
    );
  }
  const config = { host: "localhost", publicUrl: null, allowedHosts: [], allowedOrigins: allowed ?? null };
  return new RequestGate(config, () => {});
}

/** There is no network connection. */
const NO_CONNECTION = {} as Deno.ServeHandlerInfo;

function preflight(request: Request): Response {
  const asked = request.headers.get("Access-Control-Request-Headers");
  const allowed: Record<string, string> = asked === null ? {} : {
    "Access-Control-Allow-Headers": asked.split(",").map((name) => name.trim()).join(","),
    "Vary": "Access-Control-Request-Headers",
  };
  return new Response(null, { status: 204, headers: { ...preflightHeaders, ...allowed } });
}

/** Adds the headers that a response lacks. */
function withHeaders(response: Response, further: Readonly<Record<string, string>>): Response {
  for (const [name, value] of Object.entries(further)) {
    if (!response.headers.has(name)) response.headers.set(name, value);
  }
  return response;
}
