/** Lets esbuild find npm packages where Deno keeps them: there is no `node_modules` folder to look into. */
import type { Plugin } from "esbuild";
import { createRequire } from "node:module";

/** Resolves bare names with Deno's own packages, and `syncline/...` with this repository's modules. */
export const npmPackages: Plugin = {
  name: "npm packages",
  setup(build) {
    const external = new Set(build.initialOptions.external ?? []);
    build.onResolve({ filter: /^[@a-z]/ }, ({ path, importer, kind }) => {
      if (kind === "entry-point" || external.has(path)) return undefined;
      if (path.startsWith("syncline/")) return { path: new URL(import.meta.resolve(path)).pathname };
      // What a package imports is resolved from where that package stands.
      const from = importer.includes("/npm/") ? importer : import.meta.url;
      return { path: createRequire(from).resolve(path) };
    });
  },
};
