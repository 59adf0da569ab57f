/** Advances the database of a snapshot to a point by applying journal rows in order, in bounded memory. */
import { LocationError } from "../../kit/locations/object_store.ts";
import { type HistoryReplay, openHistoryReplay, readRow } from "../../engine/mod.ts";
import { replayLimits } from "../../engine/limits.ts";
import { syncFile } from "../../kit/durable_files.ts";
import { replicationLimits } from "../limits.ts";
import type { RestorePlan, Segment } from "./history.ts";
import { rowBatchesOf, rowsOf } from "./segment_rows.ts";
import type { ReplicaReader } from "./replica_target.ts";

export interface ReplayProgress {
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
 * Applies the segments of a plan to the database of its snapshot, which no other process has open. Throws a `LocationError`
 * that names the missing or damaged object and the newest point that is still restorable.
 */
export async function replay(
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
