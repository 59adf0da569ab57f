/** Endpoints and functions for administrators registered by servers in this process, so that none is missed. */
import { type Feature, Features } from "../../../../mod/server/feature.ts";

export interface AdminRoute {
  readonly method: string;
  /** As registered, with parameter names. */
  readonly path: string;
}

export interface Registry extends Disposable {
  /** Paths of actions of the main process for clients' own accounts. */
  readonly accountActions: readonly string[];
  /** Endpoints below `/api/auth`. */
  readonly accountRoutes: readonly AdminRoute[];
  /** Paths of admin actions of the main process. */
  readonly actions: readonly string[];
  readonly routes: readonly AdminRoute[];
}

/** Call before the server starts. */
export function watchFeatures(): Registry {
  const seen: Feature[] = [];
  const { add } = Features.prototype;
  Features.prototype.add = function <Added extends Feature>(this: Features, feature: Added): Added {
    seen.push(feature);
    return add.call(this, feature) as Added;
  };
  const actionsBelow = (prefix: string): string[] => {
    const paths = seen.flatMap(({ actions }) => [...actions?.keys() ?? []]);
    return [...new Set(paths.filter((path) => path.startsWith(prefix)))].sort();
  };
  const routesBelow = (prefix: string): AdminRoute[] => {
    const all = seen.flatMap(({ routes }) => routes ?? []).flatMap(({ at, app }) =>
      app.routes.map(({ method, path }) => ({ method, path: `${at}${path}` }))
    );
    // Middleware in front of all routes is registered for all methods.
    const own = all.filter(({ method, path }) => path.startsWith(prefix) && method !== "ALL");
    return [...new Map(own.map((route) => [`${route.method} ${route.path}`, route])).values()];
  };
  return {
    get accountActions() {
      return actionsBelow("_auth:");
    },
    get accountRoutes() {
      return routesBelow("/api/auth");
    },
    get actions() {
      return actionsBelow("_admin/");
    },
    get routes() {
      return routesBelow("/api/admin");
    },
    [Symbol.dispose]() {
      Features.prototype.add = add;
    },
  };
}
