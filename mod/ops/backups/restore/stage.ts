/** Staging: an archive is unpacked beside the data and checked completely; nothing in use is touched. */
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
import { ArchiveError, type ArchiveManifest, extractArchive, UnpackRoomError } from "../archive/mod.ts";
import { readMarker, type RestoreMarker, restoreOf, type StagedRestore, writeMarker } from "./marker.ts";
import {
  besideDatabase,
  nameOfPart,
  removeLeftovers,
  removeStagedFolderIfEmpty,
  stagedFolder,
  takeStaging,
} from "./places.ts";
import { otherLogFormat } from "../../log/store/log_database.ts";
import { logSchemaSql } from "../../log/store/log_schema.ts";
import { RestoreError } from "./restore_error.ts";
import { checkSwappable } from "./swap.ts";

const FOLDER_NAME_BYTES = 8;

export interface StageOptions {
  readonly dataDir: string;
  /** Path of the archive. */
  readonly archive: string;
  /** What people know the archive by. */
  readonly source: string;
  /** Whether the archive's secret key, when it has one, is restored too. */
  readonly withSecret: boolean;
  /** Whether nothing is staged: what was staged before stays, and nothing is left. */
  readonly checkOnly?: boolean;
  /** Brings the unpacked database further, before it is checked: to a commit, and the time of that. */
  readonly advance?: (databasePath: string) => Promise<{ readonly ts: number; readonly createdAt: string }>;
}

/**
 * Checks an archive completely and stages it for the next start, in the place of one that was staged before. May run
 * beside a server. Throws a `RestoreError` with the reason and whose trouble it is when that is known; what was staged before
 * stays staged then. Once `signal` is aborted nothing is staged any more: what it was aborted with is thrown.
 */
export async function stageRestore(
  options: StageOptions,
  { signal = new AbortController().signal, onProgress = () => {}, onHeld = () => {} }: {
    readonly signal?: AbortSignal;
    readonly onProgress?: OnProgress;
    /** Told each time that somebody else has the right to stage, who is waited for. */
    readonly onHeld?: () => void;
  } = {},
): Promise<StagedRestore> {
  const { dataDir, archive, source, withSecret, checkOnly = false, advance } = options;
  const { bytes, size } = await openArchive(archive);
  let staging: Disposable | null = null;
  try {
    staging = await waitForStaging(dataDir, { signal, onHeld });
    const before = await readMarker(dataDir);
    if (before !== null && before.swap !== null) {
      throw new RestoreError(
        `The restore of "${before.source}" is being applied: it has to be finished first`,
      );
    }
    await removeLeftovers(dataDir, { keep: before?.folder ?? null });
    const marker = await unpack(bytes.pipeThrough(counting(size, onProgress), { signal }), {
      ...{ dataDir, source, withSecret, checkOnly, signal, onProgress },
      ...(advance !== undefined && { advance }),
    });
    await removeLeftovers(dataDir, { keep: checkOnly ? before?.folder ?? null : marker.folder });
    return restoreOf(marker);
  } catch (error) {
    await bytes.cancel().catch(() => {});
    throw explained(error);
  } finally {
    // Who has the right to stage may just be about to put something into it.
    if (staging !== null) await removeStagedFolderIfEmpty(dataDir);
    staging?.[Symbol.dispose]();
  }
}

/** The right to stage. Who is about to end, as somebody who cancels a restore, is waited for; a `RestoreError` when it takes longer. */
async function waitForStaging(
  dataDir: string,
  { signal, onHeld }: { readonly signal: AbortSignal; readonly onHeld: () => void },
): Promise<Disposable> {
  const givesUpAt = performance.now() + opsLimits.stagingHeldMs;
  for (;;) {
    // Whoever had it may just have removed the folder.
    await Deno.mkdir(stagedFolder(dataDir), { recursive: true, mode: 0o700 });
    await syncFolder(dataDir);
    const staging = await takeStaging(dataDir);
    if (staging !== null) return staging;
    if (performance.now() >= givesUpAt) {
      throw new RestoreError("Another restore is being staged: wait until it is");
    }
    onHeld();
    await wait(opsLimits.heldLookMs);
    signal.throwIfAborted();
  }
}

/** Lets bytes through, and tells how many of them have passed. */
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
    if (error instanceof Deno.errors.NotFound) throw new RestoreError(`There is no file "${path}"`);
    throw new RestoreError(`Cannot read "${path}": ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
  const { isFile, size } = await file.stat();
  if (isFile) return { bytes: file.readable, size };
  file.close();
  throw new RestoreError(`"${path}" is not a file: name a backup archive (.tar.zst)`, { fault: "archive" });
}

/** Whose trouble it was, for whoever asked. */
function explained(error: unknown): unknown {
  if (error instanceof ArchiveError) {
    return new RestoreError(error.message, { fault: "archive", cause: error });
  }
  if (error instanceof UnpackRoomError) {
    return new RestoreError(error.message, { fault: "room", cause: error });
  }
  if (!isDiskFull(error)) return error;
  return new RestoreError("There is no room on the disk to stage the restore: free some, and try again", {
    fault: "room",
    cause: error,
  });
}

/** Leaves a complete, checked folder with a marker that names it, or nothing. */
async function unpack(
  archive: ReadableStream<Uint8Array>,
  options: Pick<StageOptions, "dataDir" | "source" | "withSecret" | "checkOnly" | "advance"> & {
    readonly signal: AbortSignal;
    readonly onProgress: OnProgress;
  },
): Promise<RestoreMarker> {
  const { dataDir, source, withSecret, checkOnly, signal, advance, onProgress } = options;
  const folder = randomBytes(FOLDER_NAME_BYTES).toString("hex");
  const path = join(stagedFolder(dataDir), folder);
  try {
    const manifest = await extractArchive(archive, path);
    const database = join(path, nameOfPart.database);
    // Before anything writes to it, which triggers would follow.
    checked("database", () => checkDatabaseSchema(database));
    const advanced = await advance?.(database);
    onProgress({ what: "Checking the database", done: 0, of: null, unit: "documents" });
    const { ts, tables, documents } = checked("database", () => checkDatabase(database));
    // What is committed from here on is another history than the one the archive was taken from.
    forgetHistory(database);
    const log = join(path, nameOfPart.log);
    // The data are worth more than a log that this version cannot read.
    const withLog = manifest.parts.includes("log") && otherLogFormat(log) === null;
    if (withLog) checked("execution log", () => checkSqliteFile(log, logSchemaSql));
    const parts = manifest.parts.filter((part) =>
      part === "secret" ? withSecret : part === "log" ? withLog : true
    );
    await checkSwappable(dataDir, { folder, parts });
    await tidy(path, parts);
    signal.throwIfAborted();
    const marker: RestoreMarker = {
      format: 1,
      createdAt: advanced?.createdAt ?? manifest.createdAt,
      stagedAt: new Date().toISOString(),
      ...{ ts, tables, documents, parts, source, folder },
      sizes: await sizesOf(path),
      swap: null,
    };
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
    throw new RestoreError(`The archive's ${what} cannot be restored: ${error.reason}`, {
      fault: "archive",
      cause: error,
    });
  }
}

/** The sizes of the files in a folder; those below its folders are left out, there may be millions. */
async function sizesOf(folder: string): Promise<RestoreMarker["sizes"]> {
  const sizes: RestoreMarker["sizes"] = {};
  for await (const { name, isFile } of Deno.readDir(folder)) {
    if (isFile) sizes[name] = (await Deno.stat(join(folder, name))).size;
  }
  return sizes;
}

/** Brings the folder to what is swapped in: the parts and nothing else. */
async function tidy(folder: string, parts: ArchiveManifest["parts"]): Promise<void> {
  for (const part of ["database", "log"] as const) {
    for (const name of besideDatabase(nameOfPart[part])) await removeIfThere(join(folder, name));
  }
  for (const part of ["secret", "log"] as const) {
    if (!parts.includes(part)) await removeIfThere(join(folder, nameOfPart[part]));
  }
  // A backup of no files at all takes the place of those there are.
  if (parts.includes("files")) {
    await Deno.mkdir(join(folder, nameOfPart.files), { recursive: true, mode: 0o700 });
  }
  await syncFolder(folder);
}
