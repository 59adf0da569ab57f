/** A Convex snapshot export (zip), converted: IDs are replaced, and values become the nearest ones in JSON. */
import type { Readable } from "node:stream";
import { open } from "yauzl";
import { newId } from "../../../engine/mod.ts";
import { opsLimits } from "../../limits.ts";
import { FileFault, ImportError } from "../import/import_status.ts";
import type { ImportSource } from "../import/importer.ts";
import { jsonLines } from "../import/row_batches.ts";

/** The used part of the library, which has no types. */
interface Entry {
  readonly fileName: string;
  readonly uncompressedSize: number;
}
interface Library {
  readEntry(): void;
  openReadStream(entry: Entry, done: (error: Error | null, stream?: Readable) => void): void;
  on(event: "entry", listener: (entry: Entry) => void): void;
  on(event: "end", listener: () => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  close(): void;
}
type Open = (
  path: string,
  options: { readonly lazyEntries: true; readonly autoClose: false },
  done: (error: Error | null, zip?: Library) => void,
) => void;

/** Random access to the entries of a zip archive. */
class ZipFile implements Disposable {
  readonly #zip: Library;
  readonly #entries: ReadonlyMap<string, Entry>;

  private constructor(zip: Library, entries: ReadonlyMap<string, Entry>) {
    this.#zip = zip;
    this.#entries = entries;
  }

  /** Reads the directory. Throws if the file is not a zip archive, is damaged, or has more entries than `entriesMax`. */
  static async open(path: string, { entriesMax }: { readonly entriesMax: number }): Promise<ZipFile> {
    const zip = await new Promise<Library>((resolve, reject) =>
      (open as Open)(path, { lazyEntries: true, autoClose: false }, (error, zip) => {
        if (zip === undefined) reject(error ?? new Error("Cannot open the archive"));
        else resolve(zip);
      })
    );
    try {
      return new ZipFile(zip, await entriesOf(zip, entriesMax));
    } catch (error) {
      zip.close();
      throw error;
    }
  }

  get names(): readonly string[] {
    return [...this.#entries.keys()];
  }

  /** Uncompressed size of an entry in bytes. */
  size(name: string): number {
    return this.#entries.get(name)?.uncompressedSize ?? 0;
  }

  /** Reads an entry. Throws if it does not exist. */
  async *read(name: string): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new Error(`The archive has no ${name}`);
    const stream = await new Promise<Readable>((resolve, reject) =>
      this.#zip.openReadStream(entry, (error, stream) => {
        if (stream === undefined) reject(error ?? new Error(`Cannot read ${name}`));
        else resolve(stream);
      })
    );
    try {
      for await (const chunk of stream) yield chunk as Uint8Array<ArrayBuffer>;
    } finally {
      stream.destroy();
    }
  }

  [Symbol.dispose](): void {
    this.#zip.close();
  }
}

function entriesOf(zip: Library, entriesMax: number): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  return new Promise((resolve, reject) => {
    zip.on("entry", (entry) => {
      if (!entry.fileName.endsWith("/")) entries.set(entry.fileName, entry);
      if (entries.size > entriesMax) return reject(new RangeError(`It has more than ${entriesMax} files`));
      zip.readEntry();
    });
    zip.on("end", () => resolve(entries));
    zip.on("error", reject);
    zip.readEntry();
  });
}

const DOCUMENTS = "/documents.jsonl";
const FILES = "_storage";

export interface SnapshotTable {
  readonly table: string;
  readonly documents: number;
}

export interface SnapshotFile {
  readonly id: string;
  readonly creationTime: number;
  readonly contentType: string | null;
  /** In hexadecimal; `null` if unknown. */
  readonly sha256: string | null;
  /** Its name in the archive. */
  readonly entry: string;
}

export class ConvexSnapshot implements Disposable {
  /** Ordered by name. */
  readonly tables: readonly SnapshotTable[];
  /** Skipped tables: Convex's own, and those of components. */
  readonly skipped: readonly string[];
  readonly #zip: ZipFile;
  readonly #ids: ReadonlyMap<string, string>;
  readonly #files: readonly Omit<SnapshotFile, "id">[];
  readonly #oldFileIds: readonly string[];
  #references = 0;

  private constructor(
    zip: ZipFile,
    parts: {
      readonly tables: readonly SnapshotTable[];
      readonly skipped: readonly string[];
      readonly ids: ReadonlyMap<string, string>;
      readonly files: ReadonlyMap<string, Omit<SnapshotFile, "id">>;
    },
  ) {
    this.#zip = zip;
    this.tables = parts.tables;
    this.skipped = parts.skipped;
    this.#ids = parts.ids;
    this.#files = [...parts.files.values()];
    this.#oldFileIds = [...parts.files.keys()];
  }

  /** Reads all IDs; `tableNumbers` and `fileIds` determine the new ones. Throws an {@linkcode ImportError}. */
  static async open(
    path: string,
    { tableNumbers, fileIds }: {
      readonly tableNumbers: ReadonlyMap<string, number>;
      readonly fileIds: (count: number) => Promise<readonly string[]>;
    },
  ): Promise<ConvexSnapshot> {
    const zip = await openZip(path);
    try {
      const names = tableNames(zip);
      const ids = new Map<string, string>();
      const tables: SnapshotTable[] = [];
      for (const table of names.tables) {
        const before = ids.size;
        const number = tableNumbers.get(table) ?? 0;
        for await (const { document } of documents(zip, table)) ids.set(idOf(document, table), newId(number));
        if (ids.size > opsLimits.snapshotIdsMax) throw tooMany();
        tables.push({ table, documents: ids.size - before });
      }
      const files = await filesOf(zip);
      const made = await fileIds(files.size);
      [...files.keys()].forEach((old, at) => ids.set(old, made[at] ?? ""));
      return new ConvexSnapshot(zip, { tables, skipped: names.skipped, ids, files });
    } catch (error) {
      zip[Symbol.dispose]();
      throw error;
    }
  }

  /** Returns the table names of an export without reading further. */
  static async tableNames(path: string): Promise<readonly string[]> {
    using zip = await openZip(path);
    return tableNames(zip).tables;
  }

  get files(): readonly SnapshotFile[] {
    return this.#files.map((file, at) => ({
      ...file,
      id: this.#ids.get(this.#oldFileIds[at] ?? "") ?? "",
    }));
  }

  /** Number of IDs replaced in documents so far, counting repeated reads. */
  get references(): number {
    return this.#references;
  }

  contents(file: SnapshotFile): AsyncIterable<Uint8Array<ArrayBuffer>> {
    return this.#zip.read(file.entry);
  }

  /** Returns a table as import source: its lines with new IDs. */
  source(table: string): ImportSource {
    const name = `${table}${DOCUMENTS}`;
    const open = async function* (this: ConvexSnapshot) {
      const encoder = new TextEncoder();
      let last = 0;
      for await (const { line, document } of documents(this.#zip, table)) {
        // Keep blank lines, so that errors name the line of the file.
        const blank = "\n".repeat(line - last - 1);
        last = line;
        yield encoder.encode(`${blank}${JSON.stringify(this.#translated(document))}\n`);
      }
    };
    return { name, table, format: "jsonl", open: () => open.call(this) };
  }

  [Symbol.dispose](): void {
    this.#zip[Symbol.dispose]();
  }

  #translated(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const { _id, ...fields } = document;
    return { _id: this.#ids.get(String(_id)) ?? _id, ...this.#value(fields) as object };
  }

  #value(value: unknown): unknown {
    if (typeof value === "string") return this.#id(value);
    if (Array.isArray(value)) return value.map((element) => this.#value(element));
    if (typeof value !== "object" || value === null) return value;
    const special = specialValue(value as Record<string, unknown>);
    if (special !== undefined) return special;
    return Object.fromEntries(
      Object.entries(value).map(([name, field]) => [this.#id(name), this.#value(field)]),
    );
  }

  #id(text: string): string {
    const id = this.#ids.get(text);
    if (id === undefined) return text;
    this.#references++;
    return id;
  }
}

async function openZip(path: string): Promise<ZipFile> {
  try {
    return await ZipFile.open(path, { entriesMax: opsLimits.snapshotFilesMax });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ImportError("bad_file", `Nothing was imported.\n${path} is not a Convex export: ${reason}`, {
      cause: error,
    });
  }
}

function tableNames(
  zip: ZipFile,
): { readonly tables: readonly string[]; readonly skipped: readonly string[] } {
  const names = zip.names.filter((name) => name.endsWith(DOCUMENTS))
    .map((name) => name.slice(0, -DOCUMENTS.length)).toSorted();
  const isApp = (name: string) => !name.includes("/") && !name.startsWith("_");
  const known = new Set(["_tables", FILES]);
  const tables = names.filter(isApp);
  if (tables.length === 0) {
    throw new ImportError("bad_file", "Nothing was imported.\nThe archive has no <table>/documents.jsonl");
  }
  const skipped = names.filter((name) => !isApp(name) && !known.has(name) && zip.size(name + DOCUMENTS) > 0);
  return { tables, skipped };
}

interface LinedDocument {
  readonly line: number;
  readonly document: Readonly<Record<string, unknown>>;
}

async function* documents(zip: ZipFile, table: string): AsyncGenerator<LinedDocument, void, void> {
  const name = `${table}${DOCUMENTS}`;
  const bad = (line: number | null, message: string, cause: unknown) => {
    const text = `${name}${line === null ? "" : `, line ${line}`}: ${message}`;
    return new ImportError("bad_file", `Nothing was imported.\n${text}`, {
      cause,
      faults: [{ line, message }],
    });
  };
  try {
    for await (const { line, text } of jsonLines(zip.read(name))) {
      let document: unknown;
      try {
        document = JSON.parse(text);
      } catch (error) {
        throw bad(line, `Not JSON: ${error instanceof Error ? error.message : error}`, error);
      }
      if (typeof document !== "object" || document === null || Array.isArray(document)) {
        throw bad(line, "Expected a document", null);
      }
      yield { line, document: document as Record<string, unknown> };
    }
  } catch (error) {
    if (error instanceof ImportError) throw error;
    const line = error instanceof FileFault ? error.line : null;
    throw bad(line, error instanceof Error ? error.message : String(error), error);
  }
}

async function filesOf(zip: ZipFile): Promise<Map<string, Omit<SnapshotFile, "id">>> {
  const files = new Map<string, Omit<SnapshotFile, "id">>();
  if (!zip.names.includes(FILES + DOCUMENTS)) return files;
  const entries = new Map<string, string>();
  for (const name of zip.names) {
    const [, id] = /^_storage\/([^/.]+)(?:\.[^/]*)?$/.exec(name) ?? [];
    if (id !== undefined) entries.set(id, name);
  }
  for await (const { document } of documents(zip, FILES)) {
    const id = idOf(document, FILES);
    const entry = entries.get(id);
    if (entry === undefined) {
      throw new ImportError(
        "bad_file",
        `Nothing was imported.\nThe archive lacks the contents of file ${id}. Export with file storage included`,
      );
    }
    const { _creationTime, contentType, sha256 } = document;
    files.set(id, {
      creationTime: Number(_creationTime),
      contentType: typeof contentType === "string" ? contentType : null,
      sha256: typeof sha256 === "string" ? hexOf(sha256) : null,
      entry,
    });
  }
  return files;
}

function idOf(document: Readonly<Record<string, unknown>>, table: string): string {
  const { _id } = document;
  if (typeof _id === "string" && _id !== "") return _id;
  throw new ImportError("bad_file", `Nothing was imported.\n${table}${DOCUMENTS}: a document has no _id`);
}

function tooMany(): ImportError {
  return new ImportError(
    "bad_file",
    `Nothing was imported.\nThe export has more than ${opsLimits.snapshotIdsMax} documents, whose IDs must be kept in memory`,
  );
}

/** Checksums are in base64 or hexadecimal. */
function hexOf(sum: string): string {
  return /^[0-9a-f]{64}$/.test(sum) ? sum : Uint8Array.fromBase64(sum).toHex();
}

/** Converts Convex's encoding of values that JSON does not have. */
function specialValue(value: Readonly<Record<string, unknown>>): unknown {
  const [[name, text] = [], ...more] = Object.entries(value);
  if (more.length > 0 || typeof text !== "string") return undefined;
  switch (name) {
    case "$bytes":
      return text;
    case "$integer": {
      const integer = new DataView(Uint8Array.fromBase64(text).buffer).getBigInt64(0, true);
      return Number.isSafeInteger(Number(integer)) ? Number(integer) : String(integer);
    }
    case "$float": {
      const float = new DataView(Uint8Array.fromBase64(text).buffer).getFloat64(0, true);
      return Number.isFinite(float) ? float + 0 : null;
    }
    default:
      return undefined;
  }
}
