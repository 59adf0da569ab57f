/**
 * Exports stored files: a folder of contents by ID, a line of metadata per file, and the numbers of all tables, so that IDs of
 * files and accounts are preserved in a new data folder. While the snapshot is open, files are only listed and their contents
 * held by links; they are copied afterwards.
 */
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import type { ExportSnapshot } from "../../../engine/mod.ts";
import { fileErrorReason, syncFolder, writeAll } from "../../../kit/durable_files.ts";
import { encodeJsonLine, readJsonLines } from "../../../kit/processes/helper_process.ts";
import { StoredFiles } from "../../backups/snapshot/stored_files.ts";
import { WorkFolder } from "../../backups/snapshot/work_folder.ts";
import { exportedFolder } from "../mod.ts";
import { ExportError, MissingFileError } from "./exported_tables.ts";

interface StoredFile {
  readonly _id: string;
  readonly blob: string;
  readonly sha256: string;
  readonly size: number;
}

/** Maximum line length of the list, far above a file's document. */
const LINE_CHARS_MAX = 1_048_576;

export interface FileContents {
  /** Holds all existing contents once the snapshot is open. Absent if nothing can be held. */
  readonly holdAll?: () => Promise<void>;
  /** Keeps contents of deleted files; `false` if missing. Absent: contents are copied while the snapshot is open. */
  readonly hold?: (blob: string) => Promise<boolean>;
  /** Reads a blob; `null` if it does not exist. */
  readonly read: (blob: string) => Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null>;
}

/** A part of the export with its final name and temporary path. */
export interface ExportedPart {
  readonly file: string;
  readonly hidden: string;
}

export interface FileListing {
  readonly folder: string;
  readonly contents: FileContents;
  readonly onMade: (path: string) => void;
  /** Called between files; exceptions abort the export. */
  readonly check: () => void;
}

export interface ListedFiles {
  readonly count: number;
  readonly parts: readonly ExportedPart[];
  /** Folder of the contents. */
  readonly target: string;
  /** Temporary list of the files to copy, deleted afterwards. */
  readonly list: string;
}

/** Holds and lists the files of a snapshot. Throws a {@linkcode MissingFileError} for missing contents. */
export async function listFiles(snapshot: ExportSnapshot, noting: FileListing): Promise<ListedFiles> {
  const { folder, contents: { hold, holdAll }, onMade, check } = noting;
  await holdAll?.();
  const { files, documents, tables } = exportedFolder;
  const hidden = (file: string) => {
    const path = join(folder, `.${file}.${randomBytes(6).toString("hex")}`);
    onMade(path);
    return { file, hidden: path };
  };
  const parts = { files: hidden(files), documents: hidden(documents), tables: hidden(tables) };
  const list = hidden("copying").hidden;
  await Deno.mkdir(parts.files.hidden, { mode: 0o700 });
  using metadata = await create(parts.documents.hidden);
  using copying = await create(list);
  let count = 0;
  for (const text of snapshot.tables.includes(files) ? snapshot.documents(files) : []) {
    const { blob, ...about } = JSON.parse(text) as StoredFile;
    const { _id, sha256, size } = about;
    if (await hold?.(blob) === false) throw new MissingFileError(_id, blob);
    await writeAll(copying, encodeJsonLine({ _id, blob, sha256, size }));
    await writeAll(metadata, encodeJsonLine(about));
    count++;
    check();
  }
  await metadata.sync();
  using numbers = await create(parts.tables.hidden);
  for (const [name, number] of snapshot.numbers) await writeAll(numbers, encodeJsonLine({ name, number }));
  await numbers.sync();
  return { count, parts: Object.values(parts), target: parts.files.hidden, list };
}

export interface FileCopying {
  readonly contents: FileContents;
  readonly hasSpace: (bytes: number) => Promise<boolean>;
  /** Called after each file; exceptions abort the export. */
  readonly onFile: (done: number) => void;
}

/** Copies the listed files. Throws a {@linkcode MissingFileError}, or an {@linkcode ExportError} for damage or a full disk. */
export async function copyFiles({ target, list }: ListedFiles, copying: FileCopying): Promise<void> {
  let done = 0;
  const { readable } = await Deno.open(list);
  for await (const line of readJsonLines(readable, LINE_CHARS_MAX)) {
    const file = JSON.parse(line) as StoredFile;
    await copyFile(file, { ...copying, path: join(target, file._id) });
    copying.onFile(++done);
  }
  await syncFolder(target);
  await Deno.remove(list);
}

async function copyFile(
  { _id, blob, sha256, size }: StoredFile,
  { path, contents, hasSpace }: FileCopying & { readonly path: string },
): Promise<void> {
  if (!await hasSpace(size)) {
    throw new ExportError(
      "failed",
      "Not enough disk space for the files and a running server",
    );
  }
  const stream = await contents.read(blob);
  if (stream === null) throw new MissingFileError(_id, blob);
  const hash = createHash("sha256");
  using file = await create(path);
  for await (const chunk of stream) {
    hash.update(chunk);
    await writeAll(file, chunk);
  }
  if (hash.digest("hex") !== sha256) {
    throw new ExportError("failed", `The contents of file ${_id} are damaged`);
  }
  await file.sync();
}

async function create(path: string): Promise<Deno.FsFile> {
  return await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
}

export interface HoldOptions {
  /** Aborts waiting and linking. */
  readonly signal: AbortSignal;
  /** Called if another export of the folder must finish first. */
  readonly onWait: () => void;
}

/**
 * Links all files, so that deleted ones stay available without an open snapshot. Call it before the snapshot is opened,
 * and `holdAll` right after. `null` if the disk does not support links or is read-only. Throws
 * the reason of `signal`.
 */
export async function holdContents(
  dataDir: string,
  options: HoldOptions,
): Promise<Required<FileContents> & AsyncDisposable | null> {
  let work: WorkFolder | null = null;
  try {
    work = await WorkFolder.acquire(dataDir, { kind: "export", ...options });
    const stored = new StoredFiles(dataDir, work.links);
    await stored.link(options.signal);
    const folder = work;
    const linking = <Result>(links: Promise<Result>) =>
      attributed(links, { dataDir, signal: options.signal });
    return {
      holdAll: () => linking(stored.link(options.signal)),
      hold: (blob) => linking(stored.hold(blob)),
      read: (blob) => stored.read(blob),
      [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
    };
  } catch {
    await work?.[Symbol.asyncDispose]();
    options.signal.throwIfAborted();
    return null;
  }
}

/** Attributes errors of the data folder's disk to it, instead of to the destination. */
async function attributed<Result>(
  links: Promise<Result>,
  { dataDir, signal }: { readonly dataDir: string; readonly signal: AbortSignal },
): Promise<Result> {
  try {
    return await links;
  } catch (cause) {
    signal.throwIfAborted();
    throw new ExportError(
      "failed",
      `Cannot hold the files in the data folder "${dataDir}" while they are exported: ${
        fileErrorReason(cause)
      }`,
      { cause },
    );
  }
}
