/** Exports tables from one snapshot to files, renamed at the end. A killed export leaves hidden files only. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { ExportSnapshot } from "../../../engine/mod.ts";
import { yieldToEventLoop } from "../../../kit/clock.ts";
import {
  fileErrorReason,
  removeIfThere,
  statIfThere,
  syncFolder,
  writeAll,
} from "../../../kit/durable_files.ts";
import { blobsIn } from "../../backups/snapshot/stored_files.ts";
import { hasDiskSpace } from "../../new_file.ts";
import { opsLimits } from "../../limits.ts";
import type { OnProgress } from "../../progress.ts";
import type { TableFormat } from "../mod.ts";
import { appTables, ExportError, exportFormats, MissingFileError, namedTables } from "./exported_tables.ts";
import {
  copyFiles,
  type FileContents,
  type ListedFiles,
  listFiles as listStoredFiles,
} from "./exported_files.ts";
import { exportPieces } from "./pieces.ts";

export interface ExportFilesOptions {
  /** `null` exports all tables of the app. */
  readonly tables: readonly string[] | null;
  readonly format: TableFormat;
  /** A folder that is empty or does not exist. */
  readonly folder: string;
  /** Source of the contents of stored files; exports them too if present. */
  readonly files?: FileContents;
  /** Whether a folder's disk has space for `bytes` plus a reserve for a server on the same disk. */
  readonly hasSpace?: (folder: string, bytes: number) => Promise<boolean>;
  /** Aborts the export, which rejects with the reason. */
  readonly signal?: AbortSignal;
  readonly onProgress?: OnProgress;
}

export interface ExportSummary {
  /** Newest commit in the snapshot. */
  readonly ts: number;
  readonly tables: readonly ExportedTable[];
  readonly files?: number;
}

export interface ExportedTable {
  readonly name: string;
  readonly file: string;
  readonly documents: number;
}

/** Closes the snapshot as early as possible: it lets the write-ahead log grow. Throws an `ExportError`, also for a full disk. */
export async function exportFiles(
  snapshot: ExportSnapshot,
  options: ExportFilesOptions,
): Promise<ExportSummary> {
  const { tables, folder } = options;
  const names = tables === null ? appTables(snapshot) : namedTables(snapshot, tables);
  if (names.length === 0) {
    throw new ExportError("failed", "Nothing to export: the app has no tables");
  }
  const isNew = await onDisk(folder, prepareFolder(folder));
  const written: string[] = [];
  try {
    return await writeAllOf(snapshot, { ...options, names, written });
  } catch (error) {
    for (const path of isNew ? [folder] : written) await removeIfThere(path).catch(() => {});
    throw error;
  }
}

/** Creates the folder or checks that it is empty. Returns whether it was created. */
async function prepareFolder(folder: string): Promise<boolean> {
  const known = await statIfThere(folder);
  if (known === null) {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    return true;
  }
  if (!known.isDirectory) {
    throw new ExportError(
      "failed",
      `Cannot export to "${folder}": it is a file. Pass a new or empty folder`,
    );
  }
  for await (const entry of Deno.readDir(folder)) {
    throw new ExportError(
      "failed",
      `Cannot export to "${folder}": it is not empty and contains "${entry.name}". Pass a new or empty folder`,
    );
  }
  return false;
}

interface Writing extends ExportFilesOptions {
  readonly names: readonly string[];
  /** All created paths, for cleanup. */
  readonly written: string[];
}

async function writeAllOf(
  snapshot: ExportSnapshot,
  writing: Writing,
): Promise<ExportSummary> {
  const { names, folder, format, written } = writing;
  const { ts } = snapshot;
  const uploaded = await listFiles(snapshot, writing);
  const stays = writing.files?.hold !== undefined;
  // Contents that cannot be held are copied first, because deleted files disappear soon.
  if (!stays) await copyUploaded(uploaded, writing);
  const files: (ExportedTable & { readonly hidden: string })[] = [];
  for (const name of names) {
    const file = `${name}.${exportFormats[format].extension}`;
    const hidden = join(folder, `.${file}.${randomBytes(6).toString("hex")}`);
    files.push({
      name,
      file,
      hidden,
      documents: await writeTable(snapshot, { ...writing, table: name, path: hidden }),
    });
  }
  snapshot[Symbol.dispose]();
  if (stays) await copyUploaded(uploaded, writing);
  for (const { file, hidden } of [...files, ...uploaded?.parts ?? []]) {
    const path = join(folder, file);
    // On a case-insensitive file system two tables may have the same file name.
    if (await statIfThere(path) !== null) {
      throw new ExportError(
        "failed",
        `Cannot write "${path}": it already exists. Export the tables one by one`,
      );
    }
    await onDisk(path, Deno.rename(hidden, path));
    written.push(path);
  }
  await onDisk(folder, syncFolder(folder));
  const tables = files.map(({ name, file, documents }) => ({ name, file, documents }));
  return uploaded === null ? { ts, tables } : { ts, tables, files: uploaded.count };
}

async function listFiles(
  snapshot: ExportSnapshot,
  { files: contents, folder, written, signal }: Writing,
): Promise<ListedFiles | null> {
  if (contents === undefined) return null;
  const noting = listStoredFiles(snapshot, {
    folder,
    contents,
    onMade: (path) => void written.push(path),
    check: () => signal?.throwIfAborted(),
  });
  return await onDisk(folder, noting);
}

async function copyUploaded(
  noted: ListedFiles | null,
  { files: contents, folder, signal, onProgress, hasSpace = hasDiskSpace }: Writing,
): Promise<void> {
  if (contents === undefined || noted === null) return;
  const copying = copyFiles(noted, {
    contents,
    hasSpace: (bytes) => hasSpace(folder, bytes),
    onFile(done) {
      onProgress?.({ what: "Exporting files", done, of: noted.count, unit: "files" });
      signal?.throwIfAborted();
    },
  });
  await onDisk(folder, copying);
}

/** Writes and syncs one file. Returns the number of documents. */
async function writeTable(
  snapshot: ExportSnapshot,
  { table, path, format, signal, written, folder, onProgress, hasSpace = hasDiskSpace }: Writing & {
    readonly table: string;
    readonly path: string;
  },
): Promise<number> {
  const encoder = new TextEncoder();
  let documents = 0;
  const of = onProgress === undefined ? 0 : snapshot.count(table);
  using file = await onDisk(path, Deno.open(path, { write: true, createNew: true, mode: 0o600 }));
  written.push(path);
  let unchecked: number = opsLimits.roomCheckBytes;
  for (const piece of exportPieces(snapshot, { table, format })) {
    documents += piece.documents;
    onProgress?.({ what: `Exporting ${table}`, done: documents, of, unit: "documents" });
    if (piece.text === "") {
      await yieldToEventLoop();
    } else {
      const bytes = encoder.encode(piece.text);
      unchecked += bytes.length;
      if (unchecked > opsLimits.roomCheckBytes) {
        if (!await hasSpace(folder, bytes.length)) throw diskFullError(path);
        unchecked = 0;
      }
      await onDisk(path, writeAll(file, bytes));
    }
    signal?.throwIfAborted();
  }
  await onDisk(path, file.sync());
  return documents;
}

function diskFullError(path: string): ExportError {
  return new ExportError(
    "failed",
    `Cannot write "${path}": not enough disk space for it and a running server. Free disk space, or export to ` +
      "another disk",
  );
}

/** Converts system errors to messages that name the file. */
async function onDisk<Result>(path: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (cause) {
    if (cause instanceof ExportError) throw cause;
    throw new ExportError("failed", `Cannot write "${path}": ${fileErrorReason(cause)}`, { cause });
  }
}

export interface NewestExportOptions extends ExportFilesOptions {
  readonly databasePath: string;
  readonly open: () => Promise<ExportSnapshot>;
}

/** Like `exportFiles`, but retries a few times if missing files are no longer referenced by the database. */
export async function exportNewest(options: NewestExportOptions): Promise<ExportSummary> {
  const { databasePath, open, signal } = options;
  for (let attempt = 1;; attempt++) {
    signal?.throwIfAborted();
    using snapshot = await open();
    try {
      return await exportFiles(snapshot, options);
    } catch (error) {
      if (!(error instanceof MissingFileError) || attempt >= opsLimits.snapshotAttemptsMax) throw error;
      if (isNamed(error.blob, databasePath)) throw error;
    }
  }
}

function isNamed(blob: string, databasePath: string): boolean {
  for (const named of blobsIn(databasePath)) if (named === blob) return true;
  return false;
}
