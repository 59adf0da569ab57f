/** Backups: an archive of one state of a data folder, made while a server uses it or not. */
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
import { BackupError, NoRoomError } from "./backup_error.ts";
import { hasRoom } from "../disk_room.ts";
import { NewFile } from "../new_file.ts";
import { blobsIn, StoredFiles } from "./snapshot/stored_files.ts";
import { WorkFolder } from "./snapshot/work_folder.ts";

export interface BackupOptions {
  dataDir: string;
  /** Path of the archive; there must be none. */
  out: string;
  /** Whether the execution log goes in too, if there is one. */
  withAux: boolean;
  /** Whether the files of the data folder go in too. Those in a bucket stay there. */
  withFiles: boolean;
  /** Whether the secret key goes in too. Whoever has it can sign in as anybody. */
  includeSecret: boolean;
}

export interface BackupSummary {
  /** Absolute path of the archive. */
  path: string;
  /** Its size. */
  bytes: number;
  /** The newest commit in it. */
  ts: number;
  /** ISO 8601, in UTC. */
  createdAt: string;
  parts: ArchiveManifest["parts"];
  /**
   * Files that documents name and that are not in the data folder, counted up to a bound: those in a bucket, or lost ones.
   * 0 without `withFiles`.
   */
  missingFiles: number;
  /** Where the history of the database's journal stands in it; `null` without one. */
  history: JournalHead | null;
}

/** What a backup has to do with whoever makes it. */
export interface BackupControl {
  /** Ends it. */
  readonly signal?: AbortSignal;
  /** Called when another backup of the data folder has to be waited for. */
  readonly onWait?: () => void;
  /**
   * Takes the data folder, so that no restore begins while its parts are being opened; it is given up when they are, and
   * before anything is copied. `null` while a server has it, beside which no restore is applied.
   */
  readonly takeData?: () => Promise<Disposable | null>;
  readonly onProgress?: OnProgress;
}

/** What an archive is made of. */
interface Snapshot {
  readonly createdAt: Date;
  readonly ts: number;
  readonly database: string;
  readonly missingFiles: number;
  readonly history: JournalHead | null;
}

/**
 * Makes a backup. The database in it is one state; every file that this state names and that the data folder has is in it.
 * Writers do not wait. It needs room for a copy of the databases in the data folder meanwhile. The archive (mode 0600)
 * appears under its name when it is whole and on disk. Holds up the thread while databases are copied and bytes are packed.
 * Throws a `BackupError` or an `UnusableDatabaseError` with the reason, or what `signal` was aborted with; nothing stays
 * behind then.
 */
export async function createBackup(
  options: BackupOptions,
  control: BackupControl = {},
): Promise<BackupSummary> {
  const { signal = new AbortController().signal, onWait, takeData = () => Promise.resolve(null) } = control;
  const { dataDir } = options;
  const out = resolve(options.out);
  await checkSource(options);
  try {
    await using file = await NewFile.create(out);
    await using work = await WorkFolder.take(dataDir, { signal, ...(onWait && { onWait }) });
    using data = new DisposableStack();
    data.use(await takeData());
    if (!await hasRoom(dataDir, await databaseBytes(dataDir, archiveNames.database))) {
      throw new NoRoomError(options);
    }
    const files = options.withFiles ? new StoredFiles(dataDir, work.links) : null;
    const secret = await copySecret(options, work);
    control.onProgress?.({ what: "Copying the database", done: 0, of: null, unit: "bytes" });
    const { createdAt, ts, database, missingFiles, history } = await takeSnapshot({
      ...{ dataDir, work, files },
      whenHeld: () => data.dispose(),
    });
    const log = await copyLog(options, work);
    signal.throwIfAborted();
    const parts: ArchiveManifest["parts"] = ["database"];
    if (log !== null) parts.push("log");
    if (options.includeSecret) parts.push("secret");
    if (files !== null) parts.push("files");
    const said = { createdAt: createdAt.toISOString(), ts, parts };
    const { bytes } = await writeArchive(
      file.writable({ whenFull: () => new NoRoomError(options) }),
      { format: 1, ...said, syncline: project.version },
      entries({ database, log, secret, files, signal }),
      await packing({ paths: [database, log, secret], files, ...control }),
    );
    await file.place();
    return { path: out, bytes, ...said, missingFiles, history };
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    throw new NoRoomError({ ...options, cause: error });
  }
}

/** What a copy of a database in the data folder takes at most. */
async function databaseBytes(dataDir: string, name: string): Promise<number> {
  const files = ["", "-wal"].map((end) => statIfThere(join(dataDir, `${name}${end}`)));
  return (await Promise.all(files)).reduce((bytes, info) => bytes + (info?.size ?? 0), 0);
}

async function checkSource({ dataDir, includeSecret }: BackupOptions): Promise<void> {
  if (await statIfThere(dataDir) === null) {
    throw new BackupError(`There is no data folder "${dataDir}": name the server's with --data`);
  }
  if (await statIfThere(join(dataDir, archiveNames.database)) === null) {
    throw new BackupError(
      `There is no database in "${dataDir}": no server has run with this data folder yet`,
    );
  }
  if (includeSecret && await statIfThere(join(dataDir, archiveNames.secret)) === null) {
    throw new BackupError(`There is no ${archiveNames.secret} in "${dataDir}" to put into the backup`);
  }
}

/** Copies the database, and links the files that it names. */
async function takeSnapshot(
  { dataDir, work, files, whenHeld }: {
    readonly dataDir: string;
    readonly work: WorkFolder;
    readonly files: StoredFiles | null;
    readonly whenHeld: () => void;
  },
): Promise<Snapshot> {
  const source = join(dataDir, archiveNames.database);
  for (let attempt = 1;; attempt++) {
    const database = join(work.databases, `${attempt}.db`);
    await files?.link();
    const createdAt = new Date();
    const { ts, history } = await copyHeld(source, { database, files, whenHeld });
    const missing = await files?.select(database) ?? new Set<string>();
    // Files named still are lost, or in a bucket; the others went while this state was taken.
    if (attempt >= opsLimits.snapshotAttemptsMax || !someGone(missing, source)) {
      return { createdAt, ts, database, missingFiles: missing.size, history };
    }
    await Deno.remove(database);
  }
}

/** Gives back where the copy stands. */
async function copyHeld(
  source: string,
  { database, files, whenHeld }: {
    readonly database: string;
    readonly files: StoredFiles | null;
    /** Called when the state is held and its files are linked. */
    readonly whenHeld: () => void;
  },
): Promise<Pick<DatabaseSnapshot, "ts" | "history">> {
  using held = openDatabaseSnapshot(source);
  await files?.link();
  whenHeld();
  await held.copyTo(database);
  const { ts, history } = held;
  return { ts, history };
}

/** Whether one of the files is not named by the database as it is now. */
function someGone(missing: ReadonlySet<string>, database: string): boolean {
  if (missing.size === 0) return false;
  const gone = new Set(missing);
  for (const blob of blobsIn(database)) {
    gone.delete(blob);
    if (gone.size === 0) return false;
  }
  return true;
}

/** Copied at once: it belongs to the database that is held next. `null` when it is not asked for. */
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
  if (!await hasRoom(dataDir, await databaseBytes(dataDir, archiveNames.log))) throw new NoRoomError(options);
  const target = join(work.databases, archiveNames.log);
  await copySqliteFile(source, target);
  return target;
}

/** Counts the bytes that are packed. */
async function packing(
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
    // The manifest and the checksums are packed, too.
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

/** Most files are small: read whole, they cost a fraction of what a stream does. */
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
