/**
 * Creates backups of a data folder, with or without a running server. The command `backup` and the maintenance process call
 * it. An archive contains one consistent state of the database and its files; the execution log is copied later. The archive
 * appears only when complete, and an error leaves neither an incomplete archive nor temporary files.
 */
import project from "../../../deno.json" with { type: "json" };
import { join, resolve } from "node:path";
import {
  copySqliteFile,
  type DatabaseSnapshot,
  type JournalHead,
  openDatabaseSnapshot,
} from "../../engine/mod.ts";
import { isDiskFull, statIfThere } from "../../kit/durable_files.ts";
import type { OnProgress } from "../progress.ts";
import { opsLimits } from "../limits.ts";
import { type ArchiveEntry, type ArchiveManifest, archiveNames, writeArchive } from "./archive/mod.ts";
import { BackupError, NoSpaceError } from "./backup_error.ts";
import { hasDiskSpace, NewFile } from "../new_file.ts";
import { blobsIn, StoredFiles } from "./snapshot/stored_files.ts";
import { WorkFolder } from "./snapshot/work_folder.ts";

export interface BackupOptions {
  dataDir: string;
  /** Path of the archive, which must not exist. */
  out: string;
  /** Whether to include the execution log, if there is one. */
  withAux: boolean;
  /** Whether to include files of the data folder. Files in a bucket are not included. */
  withFiles: boolean;
  /** Whether to include the secret key, with which anyone can sign in as any user. */
  includeSecret: boolean;
}

export interface BackupSummary {
  /** Absolute path of the archive. */
  path: string;
  /** Size of the archive. */
  bytes: number;
  /** Timestamp of the newest commit. */
  ts: number;
  /** ISO 8601, in UTC. */
  createdAt: string;
  parts: ArchiveManifest["parts"];
  /**
   * Number of referenced files, up to a limit, that the data folder lacks. Includes files in a bucket. 0 without `withFiles`.
   */
  missingFiles: number;
  /** Position in the journal's history; `null` without a journal. */
  history: JournalHead | null;
}

/** Cancellation, progress and locking of a backup. */
export interface BackupControl {
  /** Checked while waiting for another backup and from packing on, not while databases are copied. */
  readonly signal?: AbortSignal;
  /** Called if another backup of the data folder must finish first. */
  readonly onWait?: () => void;
  /**
   * Locks the data folder until the first snapshot of the database is open and its files are linked, so that no restore starts
   * before. Later attempts and the execution log are opened without the lock. `null` if a server holds it.
   */
  readonly lockDataFolder?: () => Promise<Disposable | null>;
  readonly onProgress?: OnProgress;
}

/** The parts of an archive. */
interface Snapshot {
  readonly createdAt: Date;
  readonly ts: number;
  readonly database: string;
  readonly missingFiles: number;
  readonly history: JournalHead | null;
}

/**
 * Creates a backup of one consistent state of the database and the files it references in the data folder. The execution log is
 * copied later. If files were deleted while the snapshot was taken, it is taken again; after `snapshotAttemptsMax` attempts,
 * missing files are counted instead. Writers are not blocked. Needs temporary disk space for a copy of the databases. The
 * archive (mode 0600) appears under its name when complete and synced. Blocks the thread while copying databases and
 * compressing. Throws a `BackupError`, an `ArchiveError` for too many files, an `EngineError` for an unusable database, the
 * reason of `signal` or the error of a file that cannot be read, and then removes the incomplete archive and temporary files.
 * `backup.lock` remains in the data folder.
 */
export async function createBackup(
  options: BackupOptions,
  control: BackupControl = {},
): Promise<BackupSummary> {
  const { signal = new AbortController().signal, onWait, lockDataFolder = () => Promise.resolve(null) } =
    control;
  const { dataDir } = options;
  const out = resolve(options.out);
  await checkSource(options);
  try {
    await using file = await NewFile.create(out);
    await using work = await WorkFolder.acquire(dataDir, { signal, ...(onWait && { onWait }) });
    using data = new DisposableStack();
    data.use(await lockDataFolder());
    if (!await hasDiskSpace(dataDir, await databaseBytes(dataDir, archiveNames.database))) {
      throw new NoSpaceError(options);
    }
    const files = options.withFiles ? new StoredFiles(dataDir, work.links) : null;
    const secret = await copySecret(options, work);
    control.onProgress?.({ what: "Copying the database", done: 0, of: null, unit: "bytes" });
    const { createdAt, ts, database, missingFiles, history } = await takeSnapshot({
      ...{ dataDir, work, files },
      onOpened: () => data.dispose(),
    });
    const log = await copyLog(options, work);
    signal.throwIfAborted();
    const parts: ArchiveManifest["parts"] = ["database"];
    if (log !== null) parts.push("log");
    if (options.includeSecret) parts.push("secret");
    if (files !== null) parts.push("files");
    const facts = { createdAt: createdAt.toISOString(), ts, parts };
    const { bytes } = await writeArchive(
      file.writable({ whenFull: () => new NoSpaceError(options) }),
      { format: 1, ...facts, syncline: project.version },
      entries({ database, log, secret, files, signal }),
      await packingReporter({ paths: [database, log, secret], files, ...control }),
    );
    await file.publish();
    return { path: out, bytes, ...facts, missingFiles, history };
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    throw new NoSpaceError({ ...options, cause: error });
  }
}

/** Maximum size of a copy of a database in the data folder. */
async function databaseBytes(dataDir: string, name: string): Promise<number> {
  const files = ["", "-wal"].map((end) => statIfThere(join(dataDir, `${name}${end}`)));
  return (await Promise.all(files)).reduce((bytes, info) => bytes + (info?.size ?? 0), 0);
}

async function checkSource({ dataDir, includeSecret }: BackupOptions): Promise<void> {
  if (await statIfThere(dataDir) === null) {
    throw new BackupError(`Data folder "${dataDir}" not found. Pass the server's data folder with --data`);
  }
  if (await statIfThere(join(dataDir, archiveNames.database)) === null) {
    throw new BackupError(
      `No database in "${dataDir}": no server has run with this data folder yet`,
    );
  }
  if (includeSecret && await statIfThere(join(dataDir, archiveNames.secret)) === null) {
    throw new BackupError(`Cannot include ${archiveNames.secret}: not found in "${dataDir}"`);
  }
}

/** Copies the database and links the files it references: before and after opening it, see `stored_files.ts`. */
async function takeSnapshot(
  { dataDir, work, files, onOpened }: {
    readonly dataDir: string;
    readonly work: WorkFolder;
    readonly files: StoredFiles | null;
    readonly onOpened: () => void;
  },
): Promise<Snapshot> {
  const source = join(dataDir, archiveNames.database);
  for (let attempt = 1;; attempt++) {
    const database = join(work.databases, `${attempt}.db`);
    await files?.link();
    const createdAt = new Date();
    const { ts, history } = await copySnapshot(source, { database, files, onOpened });
    const missing = await files?.select(database) ?? new Set<string>();
    // Files still referenced are lost or in a bucket; others were deleted while the snapshot was taken.
    if (attempt >= opsLimits.snapshotAttemptsMax || !anyNoLongerReferenced(missing, source)) {
      return { createdAt, ts, database, missingFiles: missing.size, history };
    }
    await Deno.remove(database);
  }
}

async function copySnapshot(
  source: string,
  { database, files, onOpened }: {
    readonly database: string;
    readonly files: StoredFiles | null;
    /** Called when the snapshot is open and its files are linked. */
    readonly onOpened: () => void;
  },
): Promise<Pick<DatabaseSnapshot, "ts" | "history">> {
  using held = openDatabaseSnapshot(source);
  await files?.link();
  onOpened();
  await held.copyTo(database);
  const { ts, history } = held;
  return { ts, history };
}

/** Whether the current database no longer references one of the files. */
function anyNoLongerReferenced(missing: ReadonlySet<string>, database: string): boolean {
  if (missing.size === 0) return false;
  const gone = new Set(missing);
  for (const blob of blobsIn(database)) {
    gone.delete(blob);
    if (gone.size === 0) return false;
  }
  return true;
}

/** Copies the key first, because it belongs to the database opened next. `null` if not requested. */
async function copySecret(
  { dataDir, includeSecret }: BackupOptions,
  work: WorkFolder,
): Promise<string | null> {
  if (!includeSecret) return null;
  const target = join(work.databases, archiveNames.secret);
  await Deno.copyFile(join(dataDir, archiveNames.secret), target);
  return target;
}

/** `null` without a log. */
async function copyLog(options: BackupOptions, work: WorkFolder): Promise<string | null> {
  const { dataDir, withAux } = options;
  const source = join(dataDir, archiveNames.log);
  if (!withAux || await statIfThere(source) === null) return null;
  if (!await hasDiskSpace(dataDir, await databaseBytes(dataDir, archiveNames.log))) {
    throw new NoSpaceError(options);
  }
  const target = join(work.databases, archiveNames.log);
  await copySqliteFile(source, target);
  return target;
}

/** Reports the bytes that are archived. */
async function packingReporter(
  { paths, files, onProgress }: Pick<BackupControl, "onProgress"> & {
    readonly paths: readonly (string | null)[];
    readonly files: StoredFiles | null;
  },
): Promise<((count: number) => void) | undefined> {
  if (onProgress === undefined) return undefined;
  let of = 0;
  for (const path of paths) if (path !== null) of += (await Deno.stat(path)).size;
  if (files !== null) { for await (const { size } of files.selected()) of += size; }
  let done = 0;
  return (count) => {
    // Includes manifest and checksums.
    done = Math.min(of, done + count);
    onProgress({ what: "Packing", done, of, unit: "bytes" });
  };
}

async function* entries(
  { database, log, secret, files, signal }: {
    readonly database: string;
    readonly log: string | null;
    readonly secret: string | null;
    readonly files: StoredFiles | null;
    readonly signal: AbortSignal;
  },
): AsyncGenerator<ArchiveEntry> {
  const whole = async (name: string, path: string): Promise<ArchiveEntry> => {
    const { size } = await Deno.stat(path);
    return { name, size, open: () => openFile(path, { size, signal }) };
  };
  yield await whole(archiveNames.database, database);
  if (log !== null) yield await whole(archiveNames.log, log);
  if (secret !== null) yield await whole(archiveNames.secret, secret);
  if (files === null) return;
  for await (const { name, path, size } of files.selected()) {
    yield { name: `${archiveNames.files}${name}`, size, open: () => openFile(path, { size, signal }) };
  }
}

/** Reads small files in full, which costs a fraction of streaming them. */
async function openFile(path: string, { size, signal }: {
  readonly size: number;
  readonly signal: AbortSignal;
}): Promise<ReadableStream<Uint8Array>> {
  signal.throwIfAborted();
  if (size > opsLimits.wholeFileBytesMax) {
    return (await Deno.open(path)).readable.pipeThrough(new TransformStream(), { signal });
  }
  const bytes = await Deno.readFile(path);
  return new ReadableStream({
    start(controller) {
      if (bytes.length > 0) controller.enqueue(bytes);
      controller.close();
    },
  });
}
