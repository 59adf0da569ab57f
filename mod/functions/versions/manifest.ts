/** The manifest of a version: files with hashes, the functions folder, and the package data for isolates. */
import { createHash } from "node:crypto";
import type { AppCode } from "../packages/app_code.ts";

/** Increased when the layout or interpretation of versions changes, which changes their hashes. */
const FORMAT = 1;

/** A file of a version. */
export interface VersionFile {
  readonly bytes: number;
  /** SHA-256 in hex. */
  readonly sum: string;
}

/** Contents of a version. Paths are relative to its code folder. */
export interface VersionContent {
  /** The functions folder. */
  readonly functions: string;
  readonly files: Readonly<Record<string, VersionFile>>;
  /** Links by path, with their targets. */
  readonly links: Readonly<Record<string, string>>;
  readonly code: AppCode;
  /** The front end's folder, if it was deployed with the functions. */
  readonly static?: string;
}

/** `version.json` of a version. */
export interface Manifest extends VersionContent {
  readonly hash: string;
  /** When it was written, milliseconds since the epoch. */
  readonly madeAt: number;
  /** The folder it was copied from. Informational. */
  readonly madeFrom: string;
}

/** The hash of a version, equal for equal contents. */
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

/** Whether a string has the form of a version hash. */
export function isHash(name: string): boolean {
  return /^[0-9a-f]{32}$/.test(name);
}

/** Parses a manifest. Throws if it does not belong to the version with this hash. */
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
  if (hashOf(manifest) !== hash) throw new Error("its contents do not match its hash");
  return manifest;
}

/** Whether a path stays within its folder. */
export function isBelow(path: string): boolean {
  return path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

/** Entries sorted by name. */
function sorted(record: Readonly<Record<string, unknown>>): unknown[] {
  return Object.entries(record).sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0);
}
