/** Stages restores: an archive is unpacked beside the data and verified, without touching files in use. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import {
  checkDatabase,
  checkDatabaseSchema,
  checkSqliteFile,
  forgetHistory,
  UnusableDatabaseError,
} from "../../../engine/mod.ts";
import { isDiskFull, removeIfThere, syncFolder } from "../../../kit/durable_files.ts";
import { opsLimits } from "../../limits.ts";
import type { OnProgress } from "../../progress.ts";
import { ArchiveError, type ArchiveManifest, extractArchive, UnpackSpaceError } from "../archive/mod.ts";
import {
  acquireStagingLock,
  besideDatabase,
  nameOfPart,
  readMarker,
  removeLeftovers,
  removeStagedFolderIfEmpty,
  RestoreError,
  type RestoreMarker,
  restoreOf,
  stagedFolder,
  type StagedRestore,
  writeMarker,
} from "./marker.ts";
import { LOG_SCHEMA_SQL, otherLogFormat } from "../../log/store/log_database.ts";
import { checkSwappable } from "./swap.ts";

const FOLDER_NAME_BYTES = 8;

export interface StageOptions {
  readonly dataDir: string;
  readonly archive: string;
  /** Display name of the archive. */
  readonly source: string;
  /** Whether to restore the archive's secret key, if it has one. */
  readonly withSecret: boolean;
  /** Verifies only, keeping a previously staged restore. */
  readonly checkOnly?: boolean;
  /** With `checkOnly`: path in the data folder to which the verified database is moved. */
  readonly databaseTo?: string;
  /** Advances the unpacked database to a later commit before it is verified; returns the commit and its time. */
  readonly advance?: (databasePath: string) => Promise<{ readonly ts: number; readonly createdAt: string }>;
}

/** An archive for a running server, which never restores the secret key. */
export type StagedArchive = Pick<StageOptions, "archive" | "source" | "checkOnly" | "databaseTo">;

/**
 * Verifies an archive completely and stages it for the next start, replacing a previously staged one. Can run beside a server.
 * Throws a `RestoreError` with the reason and cause; the previously staged restore is kept. After `signal` is aborted, nothing
 * is staged and its reason is thrown.
 */
export async function stageRestore(
  options: StageOptions,
  { signal = new AbortController().signal, onProgress = () => {}, onHeld = () => {} }: {
    readonly signal?: AbortSignal;
    readonly onProgress?: OnProgress;
    /** Called each time another process holds the staging lock and is waited for. */
    readonly onHeld?: () => void;
  } = {},
): Promise<StagedRestore> {
  const { dataDir, archive, source, withSecret, checkOnly = false, databaseTo, advance } = options;
  const { bytes, size } = await openArchive(archive);
  let staging: Disposable | null = null;
  try {
    staging = await waitForStaging(dataDir, { signal, onHeld });
    const before = await readMarker(dataDir);
    if (before !== null && before.swap !== null) {
      throw new RestoreError(
        `The restore of "${before.source}" is being applied and must finish first`,
      );
    }
    await removeLeftovers(dataDir, { keep: before?.folder ?? null });
    const marker = await unpack(bytes.pipeThrough(counting(size, onProgress), { signal }), {
      ...{ dataDir, source, withSecret, checkOnly, signal, onProgress },
      ...(advance !== undefined && { advance }),
      ...(checkOnly && databaseTo !== undefined && { databaseTo }),
    });
    await removeLeftovers(dataDir, { keep: checkOnly ? before?.folder ?? null : marker.folder });
    return restoreOf(marker);
  } catch (error) {
    await bytes.cancel().catch(() => {});
    throw explained(error);
  } finally {
    // The lock holder may be about to use the folder.
    if (staging !== null) await removeStagedFolderIfEmpty(dataDir);
    staging?.[Symbol.dispose]();
  }
}

/** Acquires the staging lock, waiting for short holders such as a cancellation. Throws a `RestoreError` on timeout. */
async function waitForStaging(
  dataDir: string,
  { signal, onHeld }: { readonly signal: AbortSignal; readonly onHeld: () => void },
): Promise<Disposable> {
  const givesUpAt = performance.now() + opsLimits.stagingHeldMs;
  for (;;) {
    // A previous holder may have removed the folder.
    await Deno.mkdir(stagedFolder(dataDir), { recursive: true, mode: 0o700 });
    await syncFolder(dataDir);
    const staging = await acquireStagingLock(dataDir);
    if (staging !== null) return staging;
    if (performance.now() >= givesUpAt) {
      throw new RestoreError("Another restore is being staged. Wait until it has finished");
    }
    onHeld();
    await wait(opsLimits.lockPollMs);
    signal.throwIfAborted();
  }
}

/** Passes bytes through and reports their number. */
function counting(of: number, onProgress: OnProgress): TransformStream<Uint8Array, Uint8Array> {
  let done = 0;
  return new TransformStream({
    transform(chunk, controller) {
      done += chunk.length;
      onProgress({ what: "Unpacking", done, of, unit: "bytes" });
      controller.enqueue(chunk);
    },
  });
}

async function openArchive(
  path: string,
): Promise<{ readonly bytes: ReadableStream<Uint8Array>; readonly size: number }> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) throw new RestoreError(`File not found: "${path}"`);
    throw new RestoreError(`Cannot read "${path}": ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
  const { isFile, size } = await file.stat();
  if (isFile) return { bytes: file.readable, size };
  file.close();
  throw new RestoreError(`"${path}" is not a file. Pass a backup archive (.tar.zst)`, { fault: "archive" });
}

/** Converts errors to `RestoreError` with their cause. */
function explained(error: unknown): unknown {
  if (error instanceof ArchiveError) {
    return new RestoreError(error.message, { fault: "archive", cause: error });
  }
  if (error instanceof UnpackSpaceError) {
    return new RestoreError(error.message, { fault: "room", cause: error });
  }
  if (!isDiskFull(error)) return error;
  return new RestoreError("Not enough disk space to stage the restore. Free disk space and try again", {
    fault: "room",
    cause: error,
  });
}

/** Creates a complete, verified folder and returns its marker, or leaves nothing behind. */
async function unpack(
  archive: ReadableStream<Uint8Array>,
  options:
    & Pick<StageOptions, "dataDir" | "source" | "withSecret" | "checkOnly" | "databaseTo" | "advance">
    & {
      readonly signal: AbortSignal;
      readonly onProgress: OnProgress;
    },
): Promise<RestoreMarker> {
  const { dataDir, source, withSecret, checkOnly, databaseTo, signal, advance, onProgress } = options;
  const folder = randomBytes(FOLDER_NAME_BYTES).toString("hex");
  const path = join(stagedFolder(dataDir), folder);
  try {
    const manifest = await extractArchive(archive, path);
    const database = join(path, nameOfPart.database);
    // Before any write, which could run triggers of a manipulated database.
    checked("database", () => checkDatabaseSchema(database));
    const advanced = await advance?.(database);
    onProgress({ what: "Checking the database", done: 0, of: null, unit: "documents" });
    const { ts, tables, documents } = checked("database", () => checkDatabase(database));
    // Commits from here on form a new history, separate from the archive's.
    forgetHistory(database);
    const log = join(path, nameOfPart.log);
    // The data are more valuable than a log that this version cannot read.
    const withLog = manifest.parts.includes("log") && otherLogFormat(log) === null;
    if (withLog) checked("execution log", () => checkSqliteFile(log, () => LOG_SCHEMA_SQL));
    const parts = manifest.parts.filter((part) =>
      part === "secret" ? withSecret : part === "log" ? withLog : true
    );
    await checkSwappable(dataDir, { folder, parts });
    await keepPartsOnly(path, parts);
    signal.throwIfAborted();
    const marker: RestoreMarker = {
      format: 1,
      createdAt: advanced?.createdAt ?? manifest.createdAt,
      stagedAt: new Date().toISOString(),
      ...{ ts, tables, documents, parts, source, folder },
      sizes: await sizesOf(path),
      swap: null,
    };
    if (databaseTo !== undefined) await Deno.rename(database, databaseTo);
    if (checkOnly) await removeIfThere(path);
    else await writeMarker(dataDir, marker);
    return marker;
  } catch (error) {
    await removeIfThere(path);
    throw error;
  }
}

function checked<T>(what: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof UnusableDatabaseError)) throw error;
    throw new RestoreError(`Cannot restore the archive's ${what}: ${error.reason}`, {
      fault: "archive",
      cause: error,
    });
  }
}

/** Sizes of the files directly in a folder; subfolders, which may contain millions of files, are skipped. */
async function sizesOf(folder: string): Promise<RestoreMarker["sizes"]> {
  const sizes: RestoreMarker["sizes"] = {};
  for await (const { name, isFile } of Deno.readDir(folder)) {
    if (isFile) sizes[name] = (await Deno.stat(join(folder, name))).size;
  }
  return sizes;
}

/** Reduces the folder to the parts that are swapped in. */
async function keepPartsOnly(folder: string, parts: ArchiveManifest["parts"]): Promise<void> {
  for (const part of ["database", "log"] as const) {
    for (const name of besideDatabase(nameOfPart[part])) await removeIfThere(join(folder, name));
  }
  for (const part of ["secret", "log"] as const) {
    if (!parts.includes(part)) await removeIfThere(join(folder, nameOfPart[part]));
  }
  // A backup without any files replaces existing ones with an empty folder.
  if (parts.includes("files")) {
    await Deno.mkdir(join(folder, nameOfPart.files), { recursive: true, mode: 0o700 });
  }
  await syncFolder(folder);
}
