/** `httpRouter()` and `httpAction`: how `http.ts` declares the app's own HTTP routes. */
import { normalPath } from "../../kit/request_path.ts";
import { routeLimits } from "../limits.ts";
import type { ActionCtx } from "./context.ts";

/** Methods a route may have. `HEAD` is answered by the route of `GET`, without the body. */
export type HttpMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";

const methods: readonly string[] = [
  "GET",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
] satisfies HttpMethod[];

/** Answers a request. Bodies stream both ways: the request's as it is read, the response's as it is written. */
export type HttpHandler = (ctx: ActionCtx, request: Request) => Response | Promise<Response>;

/** What {@linkcode httpAction} makes. */
export class HttpAction {
  readonly #handler: HttpHandler;

  constructor(handler: HttpHandler) {
    this.#handler = handler;
  }

  /** The isolate runs it. */
  static handler(action: HttpAction): HttpHandler {
    return action.#handler;
  }
}

/**
 * An action that answers requests, to be given to a route. What it throws is answered with status 500.
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

/** One path, or every path that begins with a prefix. */
export type RouteSpec =
  & { readonly method: HttpMethod; readonly handler: HttpAction }
  & (
    | { readonly path: string; readonly pathPrefix?: never }
    | { readonly pathPrefix: string; readonly path?: never }
  );

/** A declared route. */
export interface RouteDefinition {
  readonly method: HttpMethod;
  /** As it stands in URLs. */
  readonly path: string;
  /** Whether it is for every path that begins with `path`. */
  readonly prefix: boolean;
  readonly handler: HttpHandler;
}

/** Routes by method and path. A path wins over prefixes, and of those the longest. */
export class HttpRouter {
  readonly #routes = new Map<string, RouteDefinition>();

  /** Adds a route. Throws `TypeError` for one that exists already, or whose path belongs to the service. */
  route({ path, pathPrefix, method, handler }: RouteSpec): void {
    if (!methods.includes(method)) {
      throw new TypeError(
        String(method).toUpperCase() === "HEAD"
          ? "HEAD needs no route of its own: the route of GET answers it"
          : `The method of a route is one of ${methods.join(", ")}, not ${String(method)}`,
      );
    }
    if ((path === undefined) === (pathPrefix === undefined)) {
      throw new TypeError("A route has either a path or a pathPrefix");
    }
    if (!(handler instanceof HttpAction)) {
      throw new TypeError(`The handler of ${method} ${path ?? pathPrefix} is not made by httpAction()`);
    }
    const prefix = path === undefined;
    const checkedPath = urlPath(path ?? pathPrefix, { prefix });
    const key = `${method} ${checkedPath}${prefix ? "*" : ""}`;
    if (this.#routes.has(key)) throw new TypeError(`There are two routes for ${key}`);
    if (this.#routes.size >= routeLimits.routesMax) {
      throw new RangeError(`There are more than ${routeLimits.routesMax} routes`);
    }
    this.#routes.set(key, { method, path: checkedPath, prefix, handler: HttpAction.handler(handler) });
  }

  /** The declared routes. The isolate reads them. */
  static definitions(router: HttpRouter): ReadonlyMap<string, RouteDefinition> {
    return router.#routes;
  }
}

/** What `http.ts` exports as its default. */
export function httpRouter(): HttpRouter {
  return new HttpRouter();
}

/** The routes by key that a default export of `http.ts` declares; `null` for a value not made by {@linkcode httpRouter}. */
export function routeDefinitions(exported: unknown): ReadonlyMap<string, RouteDefinition> | null {
  return exported instanceof HttpRouter ? HttpRouter.definitions(exported) : null;
}

/** A path as it stands in URLs. */
function urlPath(path: string | undefined, { prefix }: { readonly prefix: boolean }): string {
  const what = prefix ? "pathPrefix" : "path";
  if (typeof path !== "string" || !path.startsWith("/") || path.length > routeLimits.pathCharsMax) {
    throw new TypeError(
      `The ${what} of a route begins with a slash and has up to ${routeLimits.pathCharsMax} characters: ${
        String(path)
      }`,
    );
  }
  if (/[?#]/.test(path)) throw new TypeError(`The ${what} of a route has no "?" and no "#": ${path}`);
  const pathname = normalPath(path);
  if (pathname === null) {
    throw new TypeError(`The ${what} of a route is no path that requests can have: ${path}`);
  }
  const [, first] = pathname.split("/");
  const reserved = first === "api" || first === "_" || pathname === "/metrics";
  if (reserved && (pathname !== `/${first}` || !prefix)) {
    throw new TypeError(`"${path}" belongs to the service: its own routes stand under /api, /_ and /metrics`);
  }
  return pathname;
}
