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

/** A file may change twice within one timestamp step: recently changed files are always hashed again. */
const SETTLED_MS = 2_000;

/** Buffer size for reading. */
const piece = new Uint8Array(64 * 1024);

interface Known extends VersionFile {
  /** Identifies a state of a file. */
  readonly stamp: string;
}

export class FileSums {
  #known = new Map<string, Known>();
  #used = new Map<string, Known>();

  of(path: string): VersionFile {
    const stamp = stampOf(path);
    const known = this.#known.get(path);
    const current = known?.stamp === stamp.text ? known : { ...sumOfFile(path), stamp: stamp.text };
    if (Date.now() - stamp.changedAt > SETTLED_MS) this.#used.set(path, current);
    return { bytes: current.bytes, sum: current.sum };
  }

  /** Drops files that were not requested since the last call. */
  settle(): void {
    this.#known = this.#used;
    this.#used = new Map();
  }
}

/** Hashes a file of any size with bounded memory. */
function sumOfFile(path: string): VersionFile {
  using file = Deno.openSync(path);
  const sum = createHash("sha256");
  let bytes = 0;
  for (;;) {
    const count = file.readSync(piece);
    if (count === null) return { bytes, sum: sum.digest("hex") };
    sum.update(piece.subarray(0, count));
    bytes += count;
  }
}

export function sumOf(content: Uint8Array): VersionFile {
  return { bytes: content.length, sum: createHash("sha256").update(content).digest("hex") };
}

function stampOf(path: string): { readonly text: string; readonly changedAt: number } {
  const { mtime, ctime, size, ino, dev } = Deno.statSync(path);
  const changedAt = Math.max(mtime?.getTime() ?? 0, ctime?.getTime() ?? 0);
  return { text: [mtime?.getTime(), ctime?.getTime(), size, ino, dev].join(), changedAt };
}
