/** Locations of npm packages for esbuild: Deno stores them outside of a `node_modules` folder. */
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

/** Returns esbuild's `alias` for React, its dependencies, and this repository's own modules for pages. */
export function packageAliases(): Record<string, string> {
  const require = createRequire(import.meta.url);
  const reactDom = require.resolve("react-dom");
  return {
    "react": dirname(require.resolve("react")),
    "react-dom": dirname(reactDom),
    "scheduler": dirname(createRequire(reactDom).resolve("scheduler")),
    "syncline/react/streams": fileURLToPath(import.meta.resolve("syncline/react/streams")),
    "syncline/streams": fileURLToPath(import.meta.resolve("syncline/streams")),
    "syncline/react/presence": fileURLToPath(import.meta.resolve("syncline/react/presence")),
    "syncline/presence": fileURLToPath(import.meta.resolve("syncline/presence")),
    "syncline/react/account-forms": fileURLToPath(import.meta.resolve("syncline/react/account-forms")),
    "syncline/react/accounts": fileURLToPath(import.meta.resolve("syncline/react/accounts")),
    "syncline/accounts": fileURLToPath(import.meta.resolve("syncline/accounts")),
    "syncline/client": fileURLToPath(import.meta.resolve("syncline/client")),
    "syncline/react": fileURLToPath(import.meta.resolve("syncline/react")),
  };
}
