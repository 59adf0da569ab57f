/** The import map of an isolate: the map of its role, and blocked addresses. */
import { pathToFileURL } from "node:url";
import { programRoot } from "../../../kit/processes/program_root.ts";
import { importMapPath, sources } from "./start_flags.ts";
import type { IsolateRole } from "../../wire/messages.ts";

interface ImportMap {
  readonly imports: Readonly<Record<string, string>>;
  readonly scopes: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface ImportMapOptions {
  readonly role: IsolateRole;
  readonly entry: URL;
}

/** zod as a single module. Service and app code have separate instances, because their addresses differ. */
const zod = new URL("mod/functions/isolate/zod/zod.js", programRoot).href;

export function isolateImportMap({ role, entry }: ImportMapOptions): string {
  const { imports, scopes } = JSON.parse(Deno.readTextFileSync(importMapPath(role))) as ImportMap;
  const [ours = {}] = Object.values(scopes);
  const own = pathToFileURL(sources).href;
  return JSON.stringify({
    imports: {
      ...imports,
      "zod": `${zod}?app`,
      "syncline:zod": `${zod}?app`,
      ...closed(own),
      ...closed(npmCache()),
      ...closedPackages(ours),
      // The runtime resolves it through the map too.
      [entry.href]: entry.href,
    },
    scopes: { [own]: { ...ours, "zod": `${zod}?service`, [own]: own } },
  });
}

/** The runtime's cache of npm packages, which it imports without checks and with a `require` outside the import map. */
function npmCache(): string {
  const known = import.meta.resolve("zod");
  return /^.*\/npm\/(?=[^/]+\/zod\/)/.exec(known)?.[0] ?? new URL("../..", known).href;
}

/** Subpaths of these packages. The map supports no prefixes for such addresses. */
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

/** Entries that block our own packages: their `npm:` addresses would return the service's instances. */
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

/** Entries that block a folder URL in all spellings, since the runtime collapses repeated slashes. */
function closed(folder: string): Record<string, null> {
  const entries: Record<string, null> = { [folder]: null };
  const second = folder.indexOf("/", "file:///".length);
  for (let at = second; at < folder.length - 1; at = folder.indexOf("/", at + 1)) {
    entries[`${folder.slice(0, at)}//`] = null;
  }
  return entries;
}
