/** Entries and dependencies of the npm package. */

/** The package's entries and their modules. */
export const ENTRIES = {
  client: "../mod.ts",
  react: "../react/mod.ts",
  vue: "../vue/mod.ts",
  svelte: "../svelte/mod.ts",
  solid: "../solid/mod.ts",
  tanstack: "../tanstack/mod.ts",
  "react-native": "../react_native/mod.ts",
  "token-cookie": "../token_cookie/mod.ts",
  accounts: "../account_features/mod.ts",
  "react/accounts": "../react/accounts/mod.ts",
  "react/account-forms": "../react/account_forms/mod.ts",
  presence: "../presence/mod.ts",
  "react/presence": "../react/presence/mod.ts",
  streams: "../streams/mod.ts",
  "react/streams": "../react/streams/mod.ts",
  server: "../../functions/api/mod.ts",
} as const;

/** The module of `syncline/react` for server components. */
export const SERVER_COMPONENTS = { name: "react_server", path: "../react/server_components.ts" } as const;

/** Returns the conditions of an entry in `exports`. */
export function exportOf(name: string): Readonly<Record<string, string>> {
  return {
    types: `./${name}.d.ts`,
    ...(name === "react" && { "react-server": `./${SERVER_COMPONENTS.name}.js` }),
    default: `./${name}.js`,
  };
}

/** Entries for frameworks other than React. */
export const BINDINGS = ["vue", "svelte", "solid"] as const;

/** Peer dependencies with their minimum versions. */
export const PEERS: Readonly<Record<string, string>> = {
  react: ">=19",
  "solid-js": "^1.9",
  svelte: ">=5.7",
  vue: ">=3.5",
  zod: "^4",
};

/** Peers that an app needs only for their entry. */
export const FRAMEWORKS: readonly string[] = Object.keys(PEERS).filter((name) => name !== "zod");

/** Entries of at most 1 KiB that need no framework of their own. */
export const SMALL_ENTRIES = ["tanstack", "react-native", "token-cookie"] as const;

/** Left to the app's bundler. */
export const EXTERNAL: readonly string[] = Object.keys(PEERS);
