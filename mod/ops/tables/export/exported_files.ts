/**
 * The uploaded files of an export: their contents by id in a folder, a line about each, and the numbers of all tables, so
 * that ids of files and of accounts stay what they are in a new data folder. While the snapshot is open it is only noted
 * which files there are, and their contents are held; they are copied when it has ended.
 */
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import type { ExportSnapshot } from "../../../engine/mod.ts";
import { syncFolder, writeAll } from "../../../kit/durable_files.ts";
import { encodeJsonLine, readJsonLines } from "../../../kit/processes/json_lines.ts";
import { exportedFolder } from "../formats.ts";
import { ExportError, MissingFileError } from "./export_error.ts";

/** What a stored file's document says. */
interface StoredFile {
  readonly _id: string;
  readonly blob: string;
  readonly sha256: string;
  readonly size: number;
}

/** Whole lines of the list are in memory, one at a time; a document of a file is far shorter. */
const LINE_CHARS_MAX = 1_048_576;

/** Where the contents of files are. */
export interface FileContents {
  /** Holds all contents that are there, as soon as the snapshot is open. Absent where nothing can be held. */
  readonly holdAll?: () => Promise<void>;
  /**
   * Sees to it that contents stay until the export ends, whoever deletes them. `false`: they are not there. Absent where
   * nothing can be held: then they are copied while the snapshot is open.
   */
  readonly hold?: (blob: string) => Promise<boolean>;
  /** Reads contents by their name in the store; `null` when they are not there. */
  readonly read: (blob: string) => Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null>;
}

/** What was made: its name in the end, and its path until then. */
export interface ExportedPart {
  readonly file: string;
  readonly hidden: string;
}

export interface FileNoting {
  readonly folder: string;
  readonly contents: FileContents;
  /** Told of each path that is made. */
  readonly onMade: (path: string) => void;
  /** Called between two files; what it throws ends the export. */
  readonly check: () => void;
}

/** Files that are to be copied. */
export interface NotedFiles {
  readonly count: number;
  readonly parts: readonly ExportedPart[];
  /** Where the contents go. */
  readonly target: string;
  /** A list for the copying alone, which goes with it. */
  readonly list: string;
}

/** Holds and notes the files of a snapshot. Throws a {@linkcode MissingFileError} for contents that are missing. */
export async function noteFiles(snapshot: ExportSnapshot, noting: FileNoting): Promise<NotedFiles> {
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
  using said = await create(parts.documents.hidden);
  using copying = await create(list);
  let count = 0;
  for (const text of snapshot.tables.includes(files) ? snapshot.documents(files) : []) {
    const { blob, ...about } = JSON.parse(text) as StoredFile;
    const { _id, sha256, size } = about;
    if (await hold?.(blob) === false) throw new MissingFileError(_id, blob);
    await writeAll(copying, encodeJsonLine({ _id, blob, sha256, size }));
    await writeAll(said, encodeJsonLine(about));
    count++;
    check();
  }
  await said.sync();
  using numbers = await create(parts.tables.hidden);
  for (const [name, number] of snapshot.numbers) await writeAll(numbers, encodeJsonLine({ name, number }));
  await numbers.sync();
  return { count, parts: Object.values(parts), target: parts.files.hidden, list };
}

export interface FileCopying {
  readonly contents: FileContents;
  /** Whether so many bytes fit on the disk. */
  readonly hasRoom: (bytes: number) => Promise<boolean>;
  /** Called after each file; what it throws ends the export. */
  readonly onFile: (done: number) => void;
}

/**
 * Copies what was noted. Throws a {@linkcode MissingFileError} for contents that are missing, an {@linkcode ExportError} for
 * damaged ones and for a full disk.
 */
export async function copyFiles({ target, list }: NotedFiles, copying: FileCopying): Promise<void> {
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
  { path, contents, hasRoom }: FileCopying & { readonly path: string },
): Promise<void> {
  if (!await hasRoom(size)) {
    throw new ExportError(
      "failed",
      "There is no room on the disk for the files and for a server beside them",
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
    throw new ExportError("failed", `The contents of the file ${_id} are damaged`);
  }
  await file.sync();
}

async function create(path: string): Promise<Deno.FsFile> {
  return await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
}
