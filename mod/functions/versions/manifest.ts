/** What a version says of itself: its files with their sums, where its functions are, and what its isolates are told. */
import { createHash } from "node:crypto";
import type { AppCode } from "../packages/app_code.ts";

/** Advanced when versions are laid out or read in another way: they get other names then. */
const FORMAT = 1;

/** A file of a version. */
export interface VersionFile {
  readonly bytes: number;
  /** SHA-256, in hex. */
  readonly sum: string;
}

/** What a version consists of. Paths are below its folder of code. */
export interface VersionContent {
  /** The functions folder. */
  readonly functions: string;
  readonly files: Readonly<Record<string, VersionFile>>;
  /** Links by path: the path they lead to. */
  readonly links: Readonly<Record<string, string>>;
  readonly code: AppCode;
  /** The folder of the front end, when it came with the functions. */
  readonly static?: string;
}

/** The file `version.json` of a version. */
export interface Manifest extends VersionContent {
  readonly hash: string;
  /** When it was written, in milliseconds since 1970. */
  readonly madeAt: number;
  /** The folder its code was copied from, for whoever looks at it. */
  readonly madeFrom: string;
}

/** The name of a version: equal for equal content, wherever it comes from. */
export function hashOf({ functions, files, links, code, static: frontend }: VersionContent): string {
  const { refusals: _, ...table } = code.table;
  const content = {
    format: FORMAT,
    functions,
    files: sorted(files),
    links: sorted(links),
    code: [sorted(code.files), sorted(code.scopes), { ...table, files: sorted(table.files) }],
    ...(frontend !== undefined && { static: frontend }),
  };
  return createHash("sha256").update(JSON.stringify(content)).digest("hex").slice(0, HASH_CHARS);
}

const HASH_CHARS = 32;

/** Whether a name can be that of a version. */
export function isHash(name: string): boolean {
  return /^[0-9a-f]{32}$/.test(name);
}

/** Reads the text of a manifest. Throws when it is not one of the version of this name. */
export function parseManifest(text: string, hash: string): Manifest {
  const manifest = JSON.parse(text) as Manifest;
  for (
    const path of [
      ...Object.keys(manifest.files),
      ...Object.entries(manifest.links).flat(),
      manifest.functions,
      ...manifest.static === undefined ? [] : [manifest.static],
    ]
  ) {
    if (!isBelow(path)) throw new Error(`the path "${path}" leads out of it`);
  }
  if (hashOf(manifest) !== hash) throw new Error("it is not what was written");
  return manifest;
}

/** Whether a path stays below the folder it is for. */
export function isBelow(path: string): boolean {
  return path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

/** Entries in the order of their names. */
function sorted(record: Readonly<Record<string, unknown>>): unknown[] {
  return Object.entries(record).sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0);
}
