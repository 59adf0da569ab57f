/** Brings a database from a snapshot to a point: journal rows, applied the way all rows are, in bounded memory. */
import { type JournalRow, openWriterDatabase, readRow, type WriterDatabase } from "../../engine/mod.ts";
import { replayLimits } from "../../engine/limits.ts";
import { replicationLimits } from "../limits.ts";
import type { RestorePlan, Segment } from "./history.ts";
import { ReplicaError } from "./replica_error.ts";
import { readSegment } from "./segment.ts";
import type { ReplicaTarget } from "./target/replica_target.ts";

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

/** Where a replay ended. */
export interface Replayed {
  readonly ts: number;
  readonly commits: number;
  /** Time of the last commit that was applied, ms since the epoch; `null` when there was none. */
  readonly at: number | null;
}

/**
 * Applies the segments of a plan to the database of its snapshot, which nobody else has open. Throws a `ReplicaError` that
 * names what is missing or damaged, and the newest point that can still be reached.
 */
export async function replay(
  target: ReplicaTarget,
  plan: RestorePlan,
  { databasePath, signal, onProgress = () => {} }: ReplayOptions,
): Promise<Replayed> {
  const last = plan.segments.at(-1);
  let clock = plan.snapshot.at;
  using db = openWriterDatabase(databasePath, { journal: { kind: "applied" }, now: () => clock });
  const { history } = db;
  if (history?.generation !== plan.generation || history.seq !== plan.snapshot.seq) {
    throw new ReplicaError("target", `The snapshot of ts ${plan.snapshot.ts} is not what its name says`);
  }
  const untilTs = plan.toTs ??
    await newestUntil(target, last, { toTime: plan.toTime ?? Infinity, none: plan.snapshot.ts });
  const withRecordsFrom = (last?.minAt ?? 0) - 2 * replayLimits.recordMs;
  const group = new Groups(db);
  const progress = { rows: 0, commits: 0, at: null as number | null };
  try {
    for await (const row of rowsOf(target, plan.segments)) {
      signal?.throwIfAborted();
      if (row.seq <= history.seq) continue;
      if (row.tsBefore >= untilTs && row.ts > untilTs) break;
      clock = row.at;
      const entries = group.apply(row, { untilTs, withRecords: row.at >= withRecordsFrom });
      progress.rows++;
      progress.commits += entries.length;
      progress.at = entries.at(-1)?.at ?? progress.at;
      if (row.ts > untilTs) break;
      if (group.open) continue;
      onProgress({ rows: progress.rows, ofRows: plan.rows, ts: db.ts });
      // What else this process does has its turn.
      await new Promise((resolve) => setTimeout(resolve));
    }
  } catch (error) {
    group.end();
    if (!(error instanceof ReplicaError) || error.fault !== "target") throw error;
    throw new ReplicaError(
      "target",
      `${error.message}. The newest point that can be reached through it is ts ${db.ts}: --to-ts ${db.ts} restores it`,
      { cause: error },
    );
  }
  group.end();
  return { ts: db.ts, commits: progress.commits, at: progress.at };
}

/** Transactions of many rows. */
export class Groups {
  readonly #db: WriterDatabase;
  #rows = 0;
  #chars = 0;

  constructor(db: WriterDatabase) {
    this.#db = db;
  }

  get open(): boolean {
    return this.#rows > 0;
  }

  /** Throws for a row that does not fit; nothing of the open transaction is committed then. */
  apply(row: JournalRow, options: { readonly untilTs: number; readonly withRecords: boolean }) {
    if (this.#rows === 0) this.#db.openGroup();
    this.#rows++;
    this.#chars += row.body.length;
    let entries;
    try {
      entries = this.#db.applyRow(row, options);
    } catch (error) {
      this.#db.rollbackGroup();
      this.#rows = this.#chars = 0;
      throw error;
    }
    const { rowsPerCommit, charsPerCommit } = replicationLimits;
    if (this.#rows >= rowsPerCommit || this.#chars >= charsPerCommit) this.end();
    return entries;
  }

  end(): void {
    if (this.#rows === 0) return;
    this.#db.commitGroup(null);
    this.#rows = this.#chars = 0;
  }
}

/** The rows of segments one after the other; the next ones are fetched meanwhile. */
export async function* rowsOf(
  target: ReplicaTarget,
  segments: readonly Segment[],
): AsyncGenerator<JournalRow> {
  const fetched: Promise<Uint8Array<ArrayBuffer>>[] = [];
  let ahead = 0;
  let bytes = 0;
  for (let at = 0; at < segments.length; at++) {
    while (ahead < segments.length && ahead < at + replicationLimits.segmentsAhead) {
      const next = segments[ahead];
      if (next === undefined) break;
      // One at least, and the others while they are small.
      if (ahead > at && bytes + next.file.size > replicationLimits.mergeCacheBytes) break;
      bytes += next.file.size;
      const fetching = fetch(target, next);
      // Looked at when its turn has come.
      fetching.catch(() => {});
      fetched[ahead++] = fetching;
    }
    const segment = segments[at];
    const body = fetched[at];
    if (segment === undefined || body === undefined) return;
    yield* readSegment(await body, segment);
    delete fetched[at];
    bytes -= segment.file.size;
  }
}

async function fetch(target: ReplicaTarget, segment: Segment): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await target.read(segment.file.name);
  if (bytes !== null) return bytes;
  const { fromTs, toTs, generation } = segment;
  throw new ReplicaError(
    "target",
    `The segment of ts ${fromTs} to ${toTs} in generation ${generation} is missing`,
  );
}

/** The newest commit in a segment that is not later than a time. */
async function newestUntil(
  target: ReplicaTarget,
  segment: Segment | undefined,
  { toTime, none }: { readonly toTime: number; readonly none: number },
): Promise<number> {
  let newest = none;
  if (segment === undefined) return newest;
  for await (const row of rowsOf(target, [segment])) {
    for (const { ts, at } of readRow(row).commits) if (at <= toTime && ts > newest) newest = ts;
  }
  return newest;
}
