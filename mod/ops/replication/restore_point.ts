/** Point-in-time restore: rebuilds an earlier state from a replica beside the data, checks it and stages it like an archive. */
import { join } from "node:path";
import { replayLimits } from "../../engine/limits.ts";
import { type HistoryReplay, openHistoryReplay, readRow } from "../../engine/mod.ts";
import { removeIfThere, statIfThere, syncFile } from "../../kit/durable_files.ts";
import { LocationError } from "../../kit/locations/object_store.ts";
import { BackupError } from "../backups/backup_error.ts";
import { RestoreError, type StagedRestore, stageRestore } from "../backups/restore/mod.ts";
import { blobsIn } from "../backups/snapshot/stored_files.ts";
import { downloadArchive } from "../backups/stored_archives.ts";
import { replicationLimits } from "../limits.ts";
import { type Generation, generationsOf, type RestorePlan, type Segment } from "./history.ts";
import { GENERATIONS } from "./names.ts";
import { openReplica, openTarget, readTarget, type ReplicaReader } from "./replica_target.ts";
import { rowBatchesOf, rowsOf } from "./segment.ts";

interface ReplayProgress {
  /** Journal rows applied, of how many. */
  readonly rows: number;
  readonly ofRows: number;
  /** Newest commit applied. */
  readonly ts: number;
}

export interface ReplayOptions {
  readonly databasePath: string;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: ReplayProgress) => void;
}

export interface Replayed {
  readonly ts: number;
  readonly commits: number;
  /** Time of the last commit that was applied, ms since the epoch; `null` when there was none. */
  readonly at: number | null;
}

/**
 * Applies the segments of a plan, in order and in bounded memory, to the database of its snapshot, which no other process has
 * open. Throws a `LocationError` that names the missing or damaged object and the newest point that is still restorable.
 */
async function replay(
  target: ReplicaReader,
  plan: RestorePlan,
  { databasePath, signal, onProgress = () => {} }: ReplayOptions,
): Promise<Replayed> {
  const last = plan.segments.at(-1);
  const untilTs = plan.toTs ??
    await newestUntil(target, last, { toTime: plan.toTime ?? Infinity, none: plan.snapshot.ts });
  let replayed: Replayed;
  {
    using copy = openHistoryReplay(databasePath);
    const { history } = copy;
    if (history?.generation !== plan.generation || history.seq !== plan.snapshot.seq) {
      throw new LocationError("target", `The snapshot of ts ${plan.snapshot.ts} does not match its name`);
    }
    replayed = await applyRows(copy, { target, plan, untilTs, signal, onProgress });
  }
  await syncFile(databasePath);
  return replayed;
}

async function applyRows(
  copy: HistoryReplay,
  { target, plan, untilTs, signal, onProgress }: {
    readonly target: ReplicaReader;
    readonly plan: RestorePlan;
    readonly untilTs: number;
    readonly signal: AbortSignal | undefined;
    readonly onProgress: (progress: ReplayProgress) => void;
  },
): Promise<Replayed> {
  // Older records nobody asks for.
  const withRecordsFrom = (plan.segments.at(-1)?.minAt ?? 0) - 2 * replayLimits.recordMs;
  const progress = { rows: 0, commits: 0, at: null as number | null };
  // Yields to other work of this process.
  const pause = async () => {
    onProgress({ rows: progress.rows, ofRows: plan.rows, ts: copy.ts });
    await new Promise((resolve) => setTimeout(resolve));
    signal?.throwIfAborted();
  };
  const write = async () => {
    for await (const _ of copy.write()) await pause();
  };
  try {
    all: for await (const rows of rowBatchesOf(target, plan.segments)) {
      for (const row of rows) {
        if (row.seq <= plan.snapshot.seq) continue;
        if (row.tsBefore >= untilTs && row.ts > untilTs) break all;
        const { commits, at } = copy.take(row, { untilTs, withRecords: row.at >= withRecordsFrom });
        progress.rows++;
        progress.commits += commits;
        progress.at = at ?? progress.at;
        if (row.ts > untilTs) break all;
        if (copy.full) await write();
        else if (progress.rows % replicationLimits.rowsPerPause === 0) await pause();
      }
    }
  } catch (error) {
    // Damage after the requested point does not matter.
    if (!plan.named || copy.ts < untilTs) throw withReachable(error, copy.ts);
    if (!isDamage(error)) throw error;
  }
  await write();
  return { ts: copy.ts, commits: progress.commits, at: progress.at };
}

function isDamage(error: unknown): error is LocationError {
  return error instanceof LocationError && error.fault === "target";
}

/** Adds the newest point before the damage to the error. Other errors are unchanged. */
function withReachable(error: unknown, ts: number): unknown {
  if (!isDamage(error)) return error;
  return new LocationError(
    "target",
    `${error.message}. The newest point that can be reached through it is ts ${ts}: --to-ts ${ts} restores it`,
    { cause: error },
  );
}

/** The newest commit in a segment that is not later than a time. */
async function newestUntil(
  target: ReplicaReader,
  segment: Segment | undefined,
  { toTime, none }: { readonly toTime: number; readonly none: number },
): Promise<number> {
  let newest = none;
  if (segment === undefined) return newest;
  let reached = segment.fromTs - 1;
  try {
    for await (const row of rowsOf(target, [segment])) {
      for (const { ts, at } of readRow(row).commits) if (at <= toTime && ts > newest) newest = ts;
      reached = row.ts;
    }
  } catch (error) {
    throw withReachable(error, Math.max(none, reached));
  }
  return newest;
}

/** Returns all generations of a target. Throws a `LocationError` if it is no replica or cannot be read. */
export async function listGenerations(target: ReplicaReader): Promise<Generation[]> {
  await openReplica(target);
  return generationsOf(await Array.fromAsync(target.list(GENERATIONS)));
}

export interface StagedPoint extends StagedRestore {
  readonly generation: string;
  /** Files that its documents reference and the data folder lacks: some names, and the total number. */
  readonly missingFiles: readonly string[];
  readonly missingFilesCount: number;
}

export interface StagePointOptions {
  readonly dataDir: string;
  /** Whether uploaded files are in the data folder instead of a bucket. */
  readonly localFiles: boolean;
  /** Path in the data folder for the database. Nothing is staged then. */
  readonly databaseTo?: string;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: PointProgress) => void;
}

export type PointProgress =
  | { readonly step: "rows"; readonly rows: number; readonly ofRows: number }
  | { readonly step: "fetch"; readonly bytes: number }
  | { readonly step: "unpack" }
  | ({ readonly step: "replay" } & ReplayProgress)
  | { readonly step: "check" };

/** Maximum number of missing files that are listed by name. */
const FILES_NAMED_MAX = 20;

/** Folder in the data folder for a downloaded snapshot, and for rows that the target might remove. */
export const SNAPSHOT_DIR = "incoming-snapshot";

/**
 * Rebuilds the state of a plan and stages it in the data folder. Does not change data in use. Throws a `LocationError` or a
 * `RestoreError` with the reason, and then leaves an earlier staged restore in place.
 */
export async function stagePoint(
  target: ReplicaReader,
  plan: RestorePlan,
  { dataDir, localFiles, databaseTo, signal, onProgress = () => {} }: StagePointOptions,
): Promise<StagedPoint> {
  const folder = join(dataDir, SNAPSHOT_DIR);
  await removeIfThere(folder);
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const archive = join(folder, "snapshot.tar.zst");
  try {
    const rows = target.isTrimmed === true
      ? await downloadSegments(target, plan, { folder: join(folder, "rows"), signal, onProgress })
      : target;
    onProgress({ step: "fetch", bytes: plan.snapshot.file.size });
    if (!await downloadArchive(target, { name: plan.snapshot.file.name, path: archive })) {
      throw new LocationError(
        "target",
        `The snapshot of ts ${plan.snapshot.ts} in generation ${plan.generation} is missing`,
      );
    }
    onProgress({ step: "unpack" });
    const missing = { names: [] as string[], count: 0 };
    const staged = await stageRestore({
      dataDir,
      archive,
      source: `${target.location}, generation ${plan.generation}`,
      withSecret: false,
      ...(databaseTo !== undefined && { checkOnly: true, databaseTo }),
      async advance(databasePath) {
        const { ts, at } = await replay(rows, plan, {
          databasePath,
          ...(signal !== undefined && { signal }),
          onProgress: (progress) => onProgress({ step: "replay", ...progress }),
        });
        onProgress({ step: "check" });
        if (localFiles) await findMissing(databasePath, { dataDir, missing });
        return { ts, createdAt: new Date(Math.max(at ?? 0, plan.snapshot.at)).toISOString() };
      },
    }, { ...(signal !== undefined && { signal }) });
    return {
      ...staged,
      generation: plan.generation,
      missingFiles: missing.names,
      missingFilesCount: missing.count,
    };
  } catch (error) {
    if (error instanceof BackupError) throw new RestoreError(error.message, { fault: "room", cause: error });
    throw error;
  } finally {
    await removeIfThere(folder);
  }
}

/** Downloads the segments of a plan, which may be removed from the target while the snapshot is downloaded. */
async function downloadSegments(
  target: ReplicaReader,
  { segments, rows: ofRows }: RestorePlan,
  { folder, signal, onProgress }: {
    readonly folder: string;
    readonly signal: AbortSignal | undefined;
    readonly onProgress: (progress: PointProgress) => void;
  },
): Promise<ReplicaReader> {
  const held = await openTarget({ kind: "folder", path: folder }, { make: true, ...(signal && { signal }) });
  let rows = 0;
  for (const { file, fromSeq, toSeq } of segments) {
    signal?.throwIfAborted();
    onProgress({ step: "rows", rows, ofRows });
    const bytes = await readTarget(target, file.name);
    if (bytes === null) {
      throw new LocationError("target", `"${file.name}" is missing at "${target.location}"`);
    }
    await held.put(file.name, bytes);
    rows += toSeq - fromSeq + 1;
  }
  return held;
}

async function findMissing(
  databasePath: string,
  { dataDir, missing }: {
    readonly dataDir: string;
    readonly missing: { readonly names: string[]; count: number };
  },
): Promise<void> {
  for (const blob of blobsIn(databasePath)) {
    if (await statIfThere(join(dataDir, "storage", blob.slice(0, 2), blob)) !== null) continue;
    missing.count++;
    if (missing.names.length < FILES_NAMED_MAX) missing.names.push(blob);
  }
}

/** Describes the size and duration of a plan. */
export function planText(plan: RestorePlan): string {
  const { bytesPerSecond, rowsPerSecond } = replicationLimits;
  const seconds = Math.ceil(
    (plan.bytes + plan.snapshot.file.size) / bytesPerSecond + plan.rows / rowsPerSecond,
  );
  const to = plan.toTs !== null ? `ts ${plan.toTs}` : new Date(plan.toTime ?? 0).toISOString();
  return `Generation ${plan.generation} to ${to}: the snapshot of ts ${plan.snapshot.ts} (${plan.snapshot.file.size} bytes) ` +
    `and ${plan.segments.length} segments with ${plan.rows} journal rows; ${plan.bytes} bytes are fetched, which takes ` +
    `about ${seconds} s.`;
}
