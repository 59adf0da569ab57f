/**
 * The uploaded files of an export: their contents by id in a folder, a line about each, and the numbers of all tables, so
 * that ids of files and of accounts stay what they are in a new data folder.
 */
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import type { ExportSnapshot } from "../../../engine/mod.ts";
import { syncFolder, writeAll } from "../../../kit/durable_files.ts";
import { exportedFolder } from "../formats.ts";
import { ExportError } from "./export_error.ts";

/** What a stored file's document says. */
interface StoredFile {
  readonly _id: string;
  readonly blob: string;
  readonly sha256: string;
  readonly size: number;
}

/** Reads the contents of a file by its name in the store; `null` when they are not there. */
export type FileContents = (blob: string) => Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null>;

export interface WrittenFiles {
  readonly count: number;
  /** What was made: its name in the end, and its path until then. */
  readonly parts: readonly { readonly file: string; readonly hidden: string }[];
}

export interface FileWriting {
  readonly folder: string;
  readonly contents: FileContents;
  /** Whether so many bytes fit on the disk. */
  readonly hasRoom: (bytes: number) => Promise<boolean>;
  /** Told of each path that is made. */
  readonly onMade: (path: string) => void;
  /** Called after each file; what it throws ends the export. */
  readonly onFile: (done: number) => void;
}

/** Throws an {@linkcode ExportError} for contents that are missing or damaged, and for a full disk. */
export async function writeFiles(snapshot: ExportSnapshot, writing: FileWriting): Promise<WrittenFiles> {
  const { folder, onMade, onFile } = writing;
  const { files, documents, tables } = exportedFolder;
  const hidden = (file: string) => {
    const path = join(folder, `.${file}.${randomBytes(6).toString("hex")}`);
    onMade(path);
    return { file, hidden: path };
  };
  const parts = { files: hidden(files), documents: hidden(documents), tables: hidden(tables) };
  await Deno.mkdir(parts.files.hidden, { mode: 0o700 });
  using list = await create(parts.documents.hidden);
  let count = 0;
  for (const text of snapshot.tables.includes(files) ? snapshot.documents(files) : []) {
    const { blob, ...said } = JSON.parse(text) as StoredFile;
    await writeFile({ ...said, blob }, { ...writing, path: join(parts.files.hidden, said._id) });
    await writeAll(list, lineOf(said));
    onFile(++count);
  }
  await list.sync();
  await syncFolder(parts.files.hidden);
  using numbers = await create(parts.tables.hidden);
  for (const [name, number] of snapshot.numbers) await writeAll(numbers, lineOf({ name, number }));
  await numbers.sync();
  return { count, parts: Object.values(parts) };
}

async function writeFile(
  { _id, blob, sha256, size }: StoredFile,
  { path, contents, hasRoom }: FileWriting & { readonly path: string },
): Promise<void> {
  if (!await hasRoom(size)) {
    throw new ExportError(
      "failed",
      "There is no room on the disk for the files and for a server beside them",
    );
  }
  const stream = await contents(blob);
  if (stream === null) {
    throw new ExportError(
      "failed",
      `The contents of the file ${_id} are not in the data folder: it was deleted just now, or the files lie in a bucket`,
    );
  }
  const hash = createHash("sha256");
  using file = await create(path);
  for await (const chunk of stream) {
    hash.update(chunk);
    await writeAll(file, chunk);
  }
  if (hash.digest("hex") !== sha256) {
    throw new ExportError("failed", `The contents of the file ${_id} are damaged`);
  }
  await file.sync();
}

async function create(path: string): Promise<Deno.FsFile> {
  return await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
}

function lineOf(value: object): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(value)}\n`);
}
