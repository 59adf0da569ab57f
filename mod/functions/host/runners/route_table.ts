/** Matches requests to the app's routes. */
import type { WireRoute } from "../../wire/messages.ts";

export class RouteTable {
  /** By method and path. */
  readonly #exact = new Map<string, WireRoute>();
  /** Longest first. */
  readonly #prefixes: readonly WireRoute[];
  readonly routes: readonly WireRoute[];

  constructor(routes: readonly WireRoute[]) {
    this.routes = routes;
    for (const route of routes) if (!route.prefix) this.#exact.set(`${route.method} ${route.path}`, route);
    this.#prefixes = routes.filter(({ prefix }) => prefix).sort((a, b) => b.path.length - a.path.length);
  }

  /** Returns the route key for a request, or `null`. `pathname` is the raw path of the URL. */
  find(method: string, pathname: string): string | null {
    const wanted = method === "HEAD" ? "GET" : method;
    const route = this.#exact.get(`${wanted} ${pathname}`) ??
      this.#prefixes.find((candidate) => candidate.method === wanted && pathname.startsWith(candidate.path));
    return route?.key ?? null;
  }
}
