/** Shared helpers of the restore tests: data folders with all kinds of files, other archives, and inventories. */
import { LOG_SCHEMA_SQL } from "../../../mod/ops/log/store/log_database.ts";
import { createHash } from "node:crypto";
import { join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openReaderDatabase, openWriterDatabase, type Value } from "../../../mod/engine/mod.ts";
import { type ArchiveManifest, writeArchive } from "../../../mod/ops/backups/archive/mod.ts";

const schema = new Map([["notes", {
  indexes: [{ name: "by_text", fields: ["text"] }],
  searchIndexes: [],
  vectorIndexes: [],
  validate: (fields: Record<string, unknown>) => fields as Record<string, Value>,
}]]);

/** Creates a database with one note per text. With `close: false` it stays open, so its log is kept. */
export function makeDatabase(path: string, texts: readonly string[]): Disposable {
  const db = openWriterDatabase(path);
  db.applySchema(schema);
  for (const text of texts) {
    db.openGroup();
    db.beginMutation({ at: Date.now() }).insert("notes", { text });
    db.releaseMutation();
    db.commitGroup("");
  }
  return db;
}

/** The notes of a database. */
export function notesOf(path: string): unknown[] {
  using db = openReaderDatabase(path);
  db.useSchema(schema);
  db.openSnapshot();
  return [...db.beginQuery().scan("notes", "by_creation_time", { eq: [] }, { order: "asc" })]
    .map(({ doc }) => doc["text"]);
}

/** A temporary folder; removed at the end of the block. */
export class TemporaryFolder implements AsyncDisposable {
  readonly path: string;

  constructor() {
    this.path = Deno.makeTempDirSync({ prefix: "syncline-restore-" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}

/** Files by name, relative to a data folder. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** A data folder after a kill of the server, with the write-ahead log of its database. */
export async function fillDataFolder(folder: string, files: Files = {}): Promise<void> {
  await using made = new TemporaryFolder();
  using _open = makeDatabase(join(made.path, "data.db"), ["old"]);
  for await (const { name } of Deno.readDir(made.path)) {
    await Deno.copyFile(join(made.path, name), join(folder, name));
  }
  await writeFiles(folder, {
    "auth_secret.key": "old key",
    "logs.db": "old log",
    "logs.db-wal": "old log's log",
    "storage/ab/abcd": "old file",
    "storage/resumable/x": "old upload",
    "backups/one.tar.zst": "old backup",
    ...files,
  });
}

export async function writeFiles(folder: string, files: Files): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await Deno.mkdir(join(folder, name, ".."), { recursive: true });
    await Deno.writeFile(
      join(folder, name),
      typeof content === "string" ? new TextEncoder().encode(content) : content,
    );
  }
}

/** Every file below a folder by hash, without locks. Empty folders are included. */
export async function filesOf(folder: string, at = folder): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  let empty = true;
  for await (const entry of Deno.readDir(at)) {
    empty = false;
    const path = join(at, entry.name);
    if (entry.isDirectory) Object.assign(found, await filesOf(folder, path));
    else if (entry.isSymlink) found[relative(folder, path)] = `-> ${await Deno.readLink(path)}`;
    else if (entry.name !== "lock") {
      found[relative(folder, path)] = createHash("sha256").update(await Deno.readFile(path)).digest("hex");
    }
  }
  if (empty && at !== folder) found[relative(folder, at) + "/"] = "";
  return found;
}

export interface ArchiveContents {
  readonly notes?: readonly string[];
  readonly parts?: ArchiveManifest["parts"];
  /** Files beside the database. */
  readonly files?: Files;
  /** Bytes instead of a database. */
  readonly database?: Uint8Array;
}

export const CREATED_AT = "2026-01-02T03:04:05.000Z";

/** Writes an archive and returns its path. */
export async function makeArchive(
  folder: string,
  { notes = ["new", "newer"], parts = ["database"], files = {}, database }: ArchiveContents = {},
): Promise<string> {
  const entries: [string, Uint8Array][] = [["data.db", database ?? await databaseBytes(notes)]];
  for (const [name, content] of Object.entries(files)) {
    entries.push([name, typeof content === "string" ? new TextEncoder().encode(content) : content]);
  }
  const path = join(folder, "backup.tar.zst");
  const target = await Deno.open(path, { write: true, create: true, truncate: true });
  const manifest = { format: 1, createdAt: CREATED_AT, ts: notes.length, syncline: "0.1.0", parts } as const;
  await writeArchive(target.writable, manifest, listed(entries));
  return path;
}

export async function databaseBytes(notes: readonly string[]): Promise<Uint8Array> {
  await using made = new TemporaryFolder();
  const path = join(made.path, "data.db");
  makeDatabase(path, notes)[Symbol.dispose]();
  return await Deno.readFile(path);
}

/** A non-empty execution log. */
export async function logBytes(pragmas = ""): Promise<Uint8Array> {
  await using made = new TemporaryFolder();
  const path = join(made.path, "logs.db");
  {
    using log = new DatabaseSync(path);
    log.exec(`${pragmas}; ${LOG_SCHEMA_SQL}`);
    const insert = log.prepare("INSERT INTO figures VALUES ('hour', ?, ?)");
    for (let line = 0; line < 300; line++) insert.run(line, `line ${line} of the new log`);
  }
  return await Deno.readFile(path);
}

async function* listed(entries: readonly [string, Uint8Array][]) {
  for (const [name, bytes] of entries) {
    yield {
      name,
      size: bytes.length,
      open: () => Promise.resolve(new Blob([bytes.slice()]).stream()),
    };
  }
}
