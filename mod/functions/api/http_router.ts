/** `httpRouter()` and `httpAction` declare the app's own HTTP routes in `http.ts`. */
import { withHelp } from "../../explained.ts";
import { normalPath } from "../../kit/http_request.ts";
import { routeLimits } from "../limits.ts";
import type { ActionCtx } from "./context.ts";

/** Methods of routes. `HEAD` is answered by the `GET` route, without the body. */
export type HttpMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";

const methods: readonly string[] = [
  "GET",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
] satisfies HttpMethod[];

/** Handles a request. Request and response bodies are streamed. */
export type HttpHandler = (ctx: ActionCtx, request: Request) => Response | Promise<Response>;

/** Return type of {@linkcode httpAction}. */
export class HttpAction {
  readonly #handler: HttpHandler;

  constructor(handler: HttpHandler) {
    this.#handler = handler;
  }

  /** Called by the isolate. */
  static handler(action: HttpAction): HttpHandler {
    return action.#handler;
  }
}

/**
 * Creates an action that handles requests of a route. An error it throws becomes a response with status 500.
 *
 * @example
 * ```ts
 * const http = httpRouter();
 * http.route({
 *   path: "/hooks/payment",
 *   method: "POST",
 *   handler: httpAction(async (ctx, request) => {
 *     await ctx.runMutation(internal.payments.record, await request.json());
 *     return new Response(null, { status: 204 });
 *   }),
 * });
 * export default http;
 * ```
 */
export function httpAction(handler: HttpHandler): HttpAction {
  if (typeof handler !== "function") {
    throw new TypeError("httpAction() needs a handler: httpAction(async (ctx, request) => new Response())");
  }
  return new HttpAction(handler);
}

/** One path, or all paths with a prefix. */
export type RouteSpec =
  & { readonly method: HttpMethod; readonly handler: HttpAction }
  & (
    | { readonly path: string; readonly pathPrefix?: never }
    | { readonly pathPrefix: string; readonly path?: never }
  );

/** A declared route. */
export interface RouteDefinition {
  readonly method: HttpMethod;
  /** As it appears in URLs. */
  readonly path: string;
  /** Whether it matches all paths that start with `path`. */
  readonly prefix: boolean;
  readonly handler: HttpHandler;
}

/** Routes by method and path. An exact path takes precedence over prefixes, and the longest prefix over shorter ones. */
export class HttpRouter {
  readonly #routes = new Map<string, RouteDefinition>();

  /** Adds a route. Throws `TypeError` for a duplicate, or a path reserved for the service. */
  route({ path, pathPrefix, method, handler }: RouteSpec): void {
    if (!methods.includes(method)) {
      throw new TypeError(
        String(method).toUpperCase() === "HEAD"
          ? "HEAD cannot have a route: the GET route handles it"
          : `The method of a route must be one of ${methods.join(", ")}, not ${String(method)}`,
      );
    }
    if ((path === undefined) === (pathPrefix === undefined)) {
      throw new TypeError("A route needs either a path or a pathPrefix");
    }
    if (!(handler instanceof HttpAction)) {
      throw withHelp(
        new TypeError(`The handler of ${method} ${path ?? pathPrefix} must be created by httpAction()`),
        "route",
      );
    }
    const prefix = path === undefined;
    const checkedPath = urlPath(path ?? pathPrefix, { prefix });
    const key = `${method} ${checkedPath}${prefix ? "*" : ""}`;
    if (this.#routes.has(key)) throw withHelp(new TypeError(`Duplicate route ${key}`), "route");
    if (this.#routes.size >= routeLimits.routesMax) {
      throw new RangeError(`Too many routes: at most ${routeLimits.routesMax} are allowed`);
    }
    this.#routes.set(key, { method, path: checkedPath, prefix, handler: HttpAction.handler(handler) });
  }

  /** The declared routes. Read by the isolate. */
  static definitions(router: HttpRouter): ReadonlyMap<string, RouteDefinition> {
    return router.#routes;
  }
}

/** Creates the default export of `http.ts`. */
export function httpRouter(): HttpRouter {
  return new HttpRouter();
}

/** Returns the routes of a default export of `http.ts` by key; `null` if it was not created by {@linkcode httpRouter}. */
export function routeDefinitions(exported: unknown): ReadonlyMap<string, RouteDefinition> | null {
  return exported instanceof HttpRouter ? HttpRouter.definitions(exported) : null;
}

/** Validates and normalizes a path. */
function urlPath(path: string | undefined, { prefix }: { readonly prefix: boolean }): string {
  const what = prefix ? "pathPrefix" : "path";
  if (typeof path !== "string" || !path.startsWith("/") || path.length > routeLimits.pathCharsMax) {
    throw new TypeError(
      `The ${what} of a route must start with a slash and have at most ${routeLimits.pathCharsMax} characters: ${
        String(path)
      }`,
    );
  }
  if (/[?#]/.test(path)) throw new TypeError(`The ${what} of a route must not contain "?" or "#": ${path}`);
  const pathname = normalPath(path);
  if (pathname === null) {
    throw new TypeError(`The ${what} of a route is not a valid URL path: ${path}`);
  }
  const [, first] = pathname.split("/");
  const reserved = first === "api" || first === "_" || pathname === "/metrics";
  if (reserved && (pathname !== `/${first}` || !prefix)) {
    throw new TypeError(`"${path}" belongs to the service: routes below /api, /_ and /metrics are reserved`);
  }
  return pathname;
}
