/** What the features of servers in this process have registered for administrators, so that nothing new is forgotten. */
import { type Feature, Features } from "../../../../mod/server/feature.ts";

export interface AdminRoute {
  readonly method: string;
  /** As it is registered, with the names of its parameters. */
  readonly path: string;
}

export interface Registry extends Disposable {
  /** Paths of the functions for administrators that main runs. */
  readonly actions: readonly string[];
  readonly routes: readonly AdminRoute[];
}

/** To be called before the server starts. */
export function watchFeatures(): Registry {
  const seen: Feature[] = [];
  const { add } = Features.prototype;
  Features.prototype.add = function <Added extends Feature>(this: Features, feature: Added): Added {
    seen.push(feature);
    return add.call(this, feature) as Added;
  };
  return {
    get actions() {
      const paths = seen.flatMap(({ actions }) => [...actions?.keys() ?? []]);
      return [...new Set(paths.filter((path) => path.startsWith("_admin/")))].sort();
    },
    get routes() {
      const all = seen.flatMap(({ routes }) => routes ?? []).flatMap(({ at, app }) =>
        app.routes.map(({ method, path }) => ({ method, path: `${at}${path}` }))
      );
      // What stands in front of all routes is registered for all methods.
      const own = all.filter(({ method, path }) => path.startsWith("/api/admin") && method !== "ALL");
      return [...new Map(own.map((route) => [`${route.method} ${route.path}`, route])).values()];
    },
    [Symbol.dispose]() {
      Features.prototype.add = add;
    },
  };
}
