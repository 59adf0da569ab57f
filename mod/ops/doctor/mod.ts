/** The doctor: runs read-only checks on a data folder, with or without a running server. */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { checkSqliteFile, EngineError, openSnapshotCheck } from "../../engine/mod.ts";
import { statIfThere } from "../../kit/durable_files.ts";
import { archiveNames } from "../backups/archive/mod.ts";
import { blobsIn } from "../backups/snapshot/stored_files.ts";
import { filesFolder } from "../backups/snapshot/work_folder.ts";
import { doctorLimits, opsLimits } from "../limits.ts";
import { LOG_SCHEMA_SQL, OLD_FORMAT_VERSION, otherLogFormat } from "../log/store/log_database.ts";
import type { OnProgress } from "../progress.ts";

export type Status = "ok" | "warn" | "fail";

export interface Finding {
  readonly check: "integrity" | "indexes" | "files" | "log" | "space" | "clock";
  /** `warn`: informational, not a defect. */
  readonly status: Status;
  readonly message: string;
}

/** The most severe status. */
export function overall(findings: readonly Finding[]): Status {
  for (const status of ["fail", "warn"] as const) {
    if (findings.some((finding) => finding.status === status)) return status;
  }
  return "ok";
}

/** `newest`: creation time of the newest document, or `null`. */
export function checkClock(now: number, newest: number | null): Finding {
  const time = new Date(now).toISOString();
  if (newest === null) {
    return { check: "clock", status: "ok", message: `${time}, no document to compare with` };
  }
  const behindMs = newest - now;
  if (behindMs <= doctorLimits.clockWarnMs) {
    return { check: "clock", status: "ok", message: `${time}, not behind any document` };
  }
  return {
    check: "clock",
    status: behindMs > doctorLimits.clockFailMs ? "fail" : "warn",
    message: `${time}, ${Math.round(behindMs / 1000)} s behind the newest document`,
  };
}

async function checkSpace(dataDir: string, database: string): Promise<Finding> {
  const { bavail, bsize } = await statfs(dataDir);
  let bytes = 0;
  for (const path of [database, `${database}-wal`]) bytes += (await statIfThere(path))?.size ?? 0;
  return assessSpace(bavail * bsize, bytes);
}

export function assessSpace(free: number, databaseBytes: number): Finding {
  const facts = `${sizeText(free)} free, database size ${sizeText(databaseBytes)}`;
  if (free < opsLimits.diskReserveBytes) return { check: "space", status: "fail", message: facts };
  if (free < databaseBytes + opsLimits.diskReserveBytes) {
    return {
      check: "space",
      status: "warn",
      message: `${facts}: not enough for the copy that a backup makes`,
    };
  }
  return { check: "space", status: "ok", message: facts };
}

function sizeText(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1024 ** step).toFixed(step === 0 ? 0 : 1)} ${units[step]}`;
}

/** Contents of deleted files that are not removed yet. */
const DELETED = "_deleted_blobs";
const BLOB = /^[0-9a-f]{32}$/;
const SHARDS = 256;

interface FilesCheckOptions {
  readonly dataDir: string;
  readonly database: string;
  /** Minimum age of contents without a file to be reported; newer ones may belong to uploads in progress. */
  readonly orphanAgeMs: number;
  /** Time of an earlier stored database state that may reference them, or `null`. */
  readonly replacedAt: number | null;
  readonly now: () => number;
  readonly onProgress?: OnProgress;
}

interface Tally {
  named: number;
  /** Number of contents checked. */
  seen: number;
  missing: number;
  orphans: number;
  /** The first missing one. */
  example: string | null;
}

/** Checks for files without contents and the reverse, rechecking against a newer state: a server may be running. */
async function checkFiles(options: FilesCheckOptions): Promise<Finding> {
  const tally: Tally = { named: 0, seen: 0, missing: 0, orphans: 0, example: null };
  for (const _ of blobsIn(options.database)) tally.named++;
  // Names are processed by groups of folders, so that millions of files do not fill the memory.
  const parts = Math.min(SHARDS, Math.max(1, Math.ceil(tally.named / doctorLimits.namesAtOnceAimed)));
  for (let part = 0; part < parts; part++) {
    const from = Math.floor(part * SHARDS / parts);
    const to = Math.floor((part + 1) * SHARDS / parts);
    await checkPart(tally, { ...options, from, to });
  }
  return findingOf(tally);
}

async function checkPart(
  tally: Tally,
  options: FilesCheckOptions & { readonly from: number; readonly to: number },
): Promise<void> {
  const { database, dataDir, from, to, onProgress } = options;
  const isOfPart = (blob: string) => {
    const shard = parseInt(blob.slice(0, 2), 16);
    return shard >= from && shard < to;
  };
  // In this order, because a file deleted in between is in both.
  const named = new Set(blobsIn(database).filter(isOfPart));
  const deleted = new Set(blobsIn(database, DELETED).filter(isOfPart));
  const orphans = new Set<string>();
  for (let shard = from; shard < to; shard++) {
    const folder = join(filesFolder(dataDir), shard.toString(16).padStart(2, "0"));
    onProgress?.({ what: "Checking file contents", done: tally.seen, of: tally.named, unit: "files" });
    if (await statIfThere(folder) === null) continue;
    for await (const { name } of Deno.readDir(folder)) {
      tally.seen++;
      if (!BLOB.test(name) || named.delete(name) || deleted.has(name)) continue;
      if (orphans.size < doctorLimits.namesAtOnceAimed && await isOld(join(folder, name), options)) {
        orphans.add(name);
      }
    }
  }
  if (named.size === 0 && orphans.size === 0) return;
  for (const blob of blobsIn(database)) {
    orphans.delete(blob);
    if (!named.has(blob)) continue;
    tally.missing++;
    tally.example ??= blob;
  }
  tally.orphans += orphans.size;
}

/** Whether the server's orphan sweep would remove it. */
async function isOld(
  path: string,
  { orphanAgeMs, replacedAt, now }: FilesCheckOptions,
): Promise<boolean> {
  const writtenAt = (await statIfThere(path))?.mtime?.getTime();
  return writtenAt !== undefined && writtenAt <= now() - orphanAgeMs && writtenAt > (replacedAt ?? -Infinity);
}

function findingOf({ named, missing, orphans, example }: Tally): Finding {
  const left = orphans === 0
    ? ""
    : `${orphans} orphaned file contents, which the server's next cleanup removes`;
  if (missing > 0) {
    const message = `the contents of ${missing} of ${named} files are missing, such as "${example}"`;
    return { check: "files", status: "fail", message: left === "" ? message : `${message}; ${left}` };
  }
  if (left !== "") return { check: "files", status: "warn", message: left };
  return { check: "files", status: "ok", message: `${named} files, all with contents` };
}

export interface DoctorOptions extends Omit<FilesCheckOptions, "database"> {
  /** Whether files are in a bucket, in which case they are not checked. */
  readonly filesElsewhere: boolean;
}

/** Yields the findings as they become known. */
export async function* diagnose(options: DoctorOptions): AsyncGenerator<Finding> {
  const database = join(options.dataDir, archiveNames.database);
  const found = checkDatabase(database, options.onProgress);
  yield* found.findings;
  yield await files(database, { ...options, isReadable: found.lastCreationTime !== null });
  const onStep = (what: string) => options.onProgress?.({ what, done: 0, of: null, unit: "bytes" });
  onStep("Checking the execution log");
  yield await log(join(options.dataDir, archiveNames.log));
  yield await checkSpace(options.dataDir, database);
  yield checkClock(options.now(), found.lastCreationTime);
}

interface CheckedData {
  readonly findings: readonly Finding[];
  /** `null` if the database is damaged. */
  readonly lastCreationTime: number | null;
}

function checkDatabase(path: string, onProgress: OnProgress = () => {}): CheckedData {
  let sound: { readonly ts: number; readonly lastCreationTime: number } | null = null;
  const whole = () => ({
    check: "integrity",
    status: "ok",
    message: `the database is intact at ts ${sound?.ts}`,
  } as const);
  try {
    using checkup = openSnapshotCheck(path);
    // SQLite does not report progress here.
    onProgress({ what: "Checking the database file", done: 0, of: null, unit: "bytes" });
    sound = checkup.file();
    const { tables, documents } = checkup.indexes((done, of) =>
      onProgress({ what: "Checking documents and indexes", done, of, unit: "documents" })
    );
    const message = `${tables} tables, ${documents} documents: all indexes are consistent`;
    return {
      findings: [whole(), { check: "indexes", status: "ok", message }],
      lastCreationTime: sound.lastCreationTime,
    };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const { message } = error;
    if (sound === null) {
      return {
        findings: [{ check: "integrity", status: "fail", message }, {
          check: "indexes",
          status: "warn",
          message: "not checked: the database cannot be read",
        }],
        lastCreationTime: null,
      };
    }
    return {
      findings: [whole(), { check: "indexes", status: "fail", message }],
      lastCreationTime: sound.lastCreationTime,
    };
  }
}

async function files(
  database: string,
  { filesElsewhere, isReadable, ...options }: DoctorOptions & { readonly isReadable: boolean },
): Promise<Finding> {
  if (filesElsewhere) {
    return { check: "files", status: "ok", message: "not checked: files are in a bucket" };
  }
  if (!isReadable) {
    return { check: "files", status: "warn", message: "not checked: the database cannot be read" };
  }
  try {
    return await checkFiles({ ...options, database });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { check: "files", status: "fail", message: error.message };
  }
}

async function log(path: string): Promise<Finding> {
  if (await statIfThere(path) === null) return { check: "log", status: "ok", message: "no execution log" };
  const format = otherLogFormat(path);
  if (format !== null) {
    const action = format === OLD_FORMAT_VERSION ? "converts it" : "starts a new one";
    const message = `written by another version of the server (format ${format}); a server ${action}`;
    return { check: "log", status: "warn", message };
  }
  try {
    checkSqliteFile(path, () => LOG_SCHEMA_SQL);
    return { check: "log", status: "ok", message: "the execution log is intact" };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { check: "log", status: "warn", message: `${error.message} (a server starts a new one)` };
  }
}
