/** The manifest of a version: its files with hashes, and the functions folder. */
import { createHash } from "node:crypto";

/** Increased when the layout or interpretation of versions changes, which changes their hashes. */
const FORMAT = 2;

export interface VersionFile {
  readonly bytes: number;
  /** SHA-256 in hex. */
  readonly sum: string;
}

/** Contents of a version. Paths are relative to its code folder. */
export interface VersionContent {
  /** The author's functions folder, which stack traces name. */
  readonly functions: string;
  /** The bundle, and the files of the frontend. */
  readonly files: Readonly<Record<string, VersionFile>>;
  /** The frontend's folder, if it was deployed with the functions. */
  readonly static?: string;
  /** Of a version of format 1, which contains sources in place of a bundle. */
  readonly links?: Readonly<Record<string, string>>;
  readonly code?: OldCode;
}

/** `version.json` of a version. */
export interface Manifest extends VersionContent {
  readonly hash: string;
  /** When it was written, milliseconds since the epoch. */
  readonly madeAt: number;
  /** The folder it was copied from. Informational. */
  readonly madeFrom: string;
}

export function hashOf(version: VersionContent): string {
  const { functions, files, links = {}, code, static: frontend } = version;
  const content = {
    format: code === undefined ? FORMAT : 1,
    functions,
    files: sorted(files),
    ...(code !== undefined && hashedOldContent({ links, code }, sorted)),
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
      ...Object.entries(manifest.links ?? {}).flat(),
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

function sorted(record: Readonly<Record<string, unknown>>): unknown[] {
  return Object.entries(record).sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0);
}

type Addresses = Readonly<Record<string, string>>;
/** One of these. */
export type OldTarget = { readonly file?: string; readonly module?: string; readonly refused?: string };

/** Where imports lead. An address is `./path`, or a module as a `data:` URL that names a path. */
export interface OldCode {
  readonly files: Addresses;
  /** By folder and specifier. */
  readonly scopes: Readonly<Record<string, Addresses>>;
  readonly table: {
    /** CommonJS files by path. */
    readonly files: Readonly<
      Record<
        string,
        {
          readonly requires: Readonly<Record<string, OldTarget>>;
          readonly imports: Readonly<Record<string, OldTarget>>;
        }
      >
    >;
    readonly required: readonly string[];
    readonly deferred: readonly string[];
    readonly refusals: Addresses;
  };
}

/** The part of a hash that covers what only these versions have. */
function hashedOldContent(
  { links, code }: { readonly links: Addresses; readonly code: OldCode },
  sorted: (record: Readonly<Record<string, unknown>>) => unknown[],
): object {
  const { refusals: _, ...table } = code.table;
  return {
    links: sorted(links),
    code: [sorted(code.files), sorted(code.scopes), { ...table, files: sorted(table.files) }],
  };
}
