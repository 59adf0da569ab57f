/**
 * The import map of an isolate: the one all of its role have, the packages of the app, and what is closed to app code by
 * its address. Nothing of ours gives way to an entry of the app.
 */
import { pathToFileURL } from "node:url";
import { programRoot } from "../../../kit/processes/program_root.ts";
import { importMapPath, sources } from "./start_flags.ts";
import type { IsolateRole } from "../../wire/messages.ts";
import type { MapEntries } from "../../packages/app_code.ts";

interface ImportMap {
  readonly imports: Readonly<Record<string, string>>;
  readonly scopes: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface ImportMapOptions {
  readonly role: IsolateRole;
  /** The module the isolate runs. */
  readonly entry: URL;
  /** Entries of the app's packages. */
  readonly packages?: MapEntries | undefined;
}

/** The zod of isolates, as one module. The service and app code have an instance each: the address makes it another one. */
const zod = new URL("mod/functions/isolate/zod/zod.js", programRoot).href;

/** JSON of the import map. */
export function isolateImportMap(
  { role, entry, packages = new Map() }: ImportMapOptions,
): string {
  const { imports, scopes } = JSON.parse(Deno.readTextFileSync(importMapPath(role))) as ImportMap;
  const [ours = {}] = Object.values(scopes);
  const own = pathToFileURL(sources).href;
  const added: Record<string, Record<string, string>> = {};
  for (const [scope, map] of packages) if (scope !== "") added[scope] = Object.fromEntries(map);
  return JSON.stringify({
    imports: {
      ...Object.fromEntries(packages.get("") ?? []),
      ...imports,
      "zod": `${zod}?app`,
      ...closed(own),
      ...closed(npmCache()),
      ...closedPackages(ours),
      // The runtime asks the map for it, too.
      [entry.href]: entry.href,
    },
    scopes: { ...added, [own]: { ...ours, "zod": `${zod}?service`, [own]: own } },
  });
}

/**
 * The folder in which the runtime keeps npm packages. It imports from there without asking for a permission, and by a loader
 * of its own, whose `require` passes by the import map.
 */
function npmCache(): string {
  const known = import.meta.resolve("zod");
  return /^.*\/npm\/(?=[^/]+\/zod\/)/.exec(known)?.[0] ?? new URL("../..", known).href;
}

/** What can be imported of these packages beside themselves. The map has no prefixes for such addresses. */
export const packagePaths: Readonly<Record<string, readonly string[]>> = {
  "zod": [
    "compile",
    "locales",
    "mini",
    "package.json",
    "v3",
    "v4",
    "v4-mini",
    "v4/core",
    "v4/locales",
    "v4/mini",
  ],
  "croner": ["package.json"],
  "hash-wasm": ["dist/index.esm.js", "dist/index.umd.js"],
};

/**
 * Entries that close the packages our own modules use: by their `npm:` address app code would get the very instances that
 * the service works with. Any other version, or package, is in no lock file of ours, and fails.
 */
function closedPackages(ours: Readonly<Record<string, string>>): Record<string, null> {
  const entries: Record<string, null> = {};
  for (const address of Object.values(ours)) {
    if (!address.startsWith("npm:")) continue;
    const name = /^npm:(.*)@/.exec(address)?.[1] ?? "";
    for (const path of ["", "/", ...(packagePaths[name] ?? []).map((path) => `/${path}`)]) {
      for (const slashes of ["", "/", "//", "///"]) {
        entries[`npm:${slashes}${address.slice("npm:".length)}${path}`] = null;
      }
    }
  }
  return entries;
}

/**
 * Entries that close a folder, given as a URL, in every spelling: the runtime takes several slashes for one. Those at the
 * beginning of a path are gone before it looks into the map.
 */
function closed(folder: string): Record<string, null> {
  const entries: Record<string, null> = { [folder]: null };
  const second = folder.indexOf("/", "file:///".length);
  for (let at = second; at < folder.length - 1; at = folder.indexOf("/", at + 1)) {
    entries[`${folder.slice(0, at)}//`] = null;
  }
  return entries;
}
