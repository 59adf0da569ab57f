/** HTTP routes of the app, headers of the service's responses, and the rejection of writes on a follower. */
import type { MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors.ts";
import type { RouteRequests } from "../../functions/host/mod.ts";
import type { CallTrace, RequestSpans } from "../../functions/call_trace.ts";
import type { Caller } from "../../functions/host_port.ts";
import { anonymous, type Identity } from "../../functions/identity.ts";
import { refuseKey } from "../../functions/key_scope.ts";
import { type CallError, errorIdOf, publicError, serviceErrorOf } from "../../functions/outcome.ts";
import { errorResponse } from "../../kit/error_response.ts";
import { requestPath } from "../../kit/http_request.ts";
import { type Authenticator, callerOf, errorIdHeader, guestCaller } from "../../sync/mod.ts";

/** Response headers that scripts of other origins may read. */
export const exposeHeaders: readonly string[] = [
  "Accept-Ranges",
  "Content-Disposition",
  "Content-Length",
  "Content-Range",
  "ETag",
  "Retry-After",
  "Syncline-Request",
  "Syncline-Request-Id",
  "Syncline-Stream",
];

/** Headers that the router's middleware adds below `/api`, for responses that bypass it. */
export const apiHeaders = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": exposeHeaders.join(","),
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
} as const;

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

const READS_BY_BODY = /^\/api\/admin\/export\//;

/** Function calls pass: mutations are refused with the same code where they would run. */
export const refuseWrites: MiddlewareHandler = async (c, next) => {
  const { method, path } = c.req;
  const isRead = READS.has(method) || READS_BY_BODY.test(path);
  if (isRead || !/^\/api\/(?:auth|storage|admin)\//.test(path)) return await next();
  return errorResponse(new ServiceError("read_only"), apiHeaders);
};

export interface AppRoutesOptions {
  readonly routes: Pick<RouteRequests, "find" | "respond">;
  readonly authenticator: Authenticator;
  /** Sends original error messages. */
  readonly dev: boolean;
  /** Address of the client, taking trusted proxies into account. */
  readonly addressOf: (request: Request, info: Deno.ServeHandlerInfo) => string;
  /** Records spans of the requests, until the response starts. Optional. */
  readonly spans?: RequestSpans;
}

/** Answers a request with a route of the app; `null` if no route matches. */
export type AppRoutes = (request: Request, info: Deno.ServeHandlerInfo) => Promise<Response> | null;

/** A JWT or an API key. Other credentials are for the app. */
const TOKEN = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+|syncline_key_[\w-]{43}) *$/i;

export function appRoutes({ routes, authenticator, dev, addressOf, spans }: AppRoutesOptions): AppRoutes {
  return (request, info) => {
    const route = routes.find(request.method, requestPath(request));
    if (route === null) return null;
    // Read first: the connection may be gone later.
    const guest = guestCaller(addressOf(request, info));
    const span = spans?.start(route, request.headers.get("traceparent"));
    if (span === undefined) return answer(request, { route, guest });
    return answer(request, { route, guest, trace: span.trace }).then((answered) => {
      span.end(answered.status);
      return answered;
    }, (error) => {
      span.end(error instanceof ServiceError ? error.status : 500);
      throw error;
    });
  };

  async function answer(
    request: Request,
    { route, guest, trace }: {
      readonly route: string;
      readonly guest: Caller;
      readonly trace?: CallTrace;
    },
  ): Promise<Response> {
    const identity = await identityOf(request.headers.get("authorization"), {
      authenticator,
      client: guest.blame,
    });
    const refused = refuseKey(identity, "route", `${request.method} ${requestPath(request)}`);
    if (refused?.ok === false) throw new ServiceError("key_not_permitted", refused.error.message);
    const answered = await routes.respond({
      request,
      route,
      identity,
      caller: callerOf(identity, guest),
      ...(trace && { trace }),
    });
    return answered.ok ? answered.response : errorOf(answered.error, dev);
  }
}

/** Identity of the caller. Refuses invalid tokens of this server; other credentials are for the app. */
async function identityOf(
  header: string | null,
  { authenticator, client }: { readonly authenticator: Authenticator; readonly client: string },
): Promise<Identity> {
  const token = TOKEN.exec(header ?? "")?.[1];
  if (token === undefined) return anonymous;
  const verification = await authenticator.verify(token, client);
  if (verification.ok) return verification.identity;
  if (verification.error === "unknown token issuer" || verification.error === "malformed access token") {
    return anonymous;
  }
  throw new ServiceError("invalid_token", `The access token is not valid: ${verification.error}`);
}

function errorOf(error: CallError, dev: boolean): Response {
  const refusal = serviceErrorOf(error);
  if (refusal !== null) throw refusal;
  const { errorMessage, errorData } = publicError(error, { dev });
  const errorId = errorIdOf(error);
  return Response.json({ status: "error", errorMessage, errorData }, {
    status: error.kind === "args" ? 400 : 500,
    headers: { "Cache-Control": "no-store", ...(errorId !== null && { [errorIdHeader]: errorId }) },
  });
}
