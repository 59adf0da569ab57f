/** The routes of `http.ts`. */
import { type HttpHandler, routeDefinitions } from "../../api/http_router.ts";
import type { WireRoute } from "../../wire/messages.ts";

export type RouteHandlers = ReadonlyMap<string, HttpHandler>;

export interface AppRoutes {
  readonly handlers: RouteHandlers;
  readonly routes: readonly WireRoute[];
}

/** The routes of an app without `http.ts`. */
export const noRoutes: AppRoutes = { handlers: new Map(), routes: [] };

/** Returns the routes of a default export. Throws if it has none. */
export function appRoutes(exported: unknown): AppRoutes {
  const definitions = routeDefinitions(exported);
  if (definitions === null) {
    throw new TypeError(
      "the default export must be the router: const http = httpRouter(); ... export default http",
    );
  }
  const entries = [...definitions];
  return {
    handlers: new Map(entries.map(([key, { handler }]) => [key, handler])),
    routes: entries.map(([key, { method, path, prefix }]) => ({ key, method, path, prefix })),
  };
}
