/** Commit log of a replica: polls the target and reads the rows of its segments in order. */
import { setTimeout as wait } from "node:timers/promises";
import { LocationError } from "../../../kit/locations/object_store.ts";
import type { JournalRow } from "../../../engine/mod.ts";
import { replicationLimits } from "../../limits.ts";
import { chainFrom, type Generation, generationsOf } from "../history.ts";
import { GENERATIONS } from "../names.ts";
import { rowsOf } from "../segment.ts";
import type { ReplicaReader } from "../replica_target.ts";
import { type CommitLog, type LogBatch, LogGapError, type LogPosition } from "./follower.ts";

export interface SegmentLogOptions {
  /** Interval between polls of the target. */
  readonly everyMs: number;
  /** Number of further polls for objects that a late listing may lack. */
  readonly latePolls?: number;
  readonly now?: () => number;
}

/** Rows being read, after a position. */
interface OpenRows {
  readonly rows: AsyncGenerator<JournalRow>;
  at: LogPosition;
}

const { now: systemNow } = Date;

export class SegmentLog implements CommitLog<JournalRow> {
  readonly #target: ReplicaReader;
  readonly #everyMs: number;
  readonly #latePolls: number;
  readonly #now: () => number;
  #generations: readonly Generation[] = [];
  #polledAt = 0;
  /** By the monotonic clock. */
  #pollDueAt = -Infinity;
  #open: OpenRows | null = null;
  /** Consecutive polls that found newer rows, but no segment that continues the position. */
  #misses = 0;

  /** The caller closes the target. */
  constructor(target: ReplicaReader, options: SegmentLogOptions) {
    this.#target = target;
    this.#everyMs = options.everyMs;
    this.#latePolls = options.latePolls ?? replicationLimits.lateListings;
    this.#now = options.now ?? systemNow;
  }

  get location(): string {
    return this.#target.location;
  }

  async read(
    after: LogPosition,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<LogBatch<JournalRow>> {
    const found = await this.#readOpen(after);
    if (typeof found === "string") return this.#onMissing(after, found);
    if (found.length > 0) return this.#batch(after, found);
    await this.#poll(signal);
    if (!await this.#openChain(after)) return this.#onMissing(after, "the following rows are missing");
    const items = await this.#readOpen(after);
    if (typeof items === "string") return this.#onMissing(after, items);
    this.#misses = 0;
    return this.#batch(after, items);
  }

  #batch(after: LogPosition, items: readonly JournalRow[]): LogBatch<JournalRow> {
    return { items, newestTs: this.#newestTs(after), checkedAt: this.#polledAt };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closeChain();
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const pauseMs = this.#pollDueAt - performance.now();
    if (pauseMs > 0) await wait(pauseMs, undefined, { signal });
    signal.throwIfAborted();
    this.#pollDueAt = performance.now() + this.#everyMs;
    const checkedAt = this.#now();
    this.#generations = generationsOf(await Array.fromAsync(this.#target.list(GENERATIONS)));
    this.#polledAt = checkedAt;
  }

  /** Opens the segments after a position. Returns `false` at a gap. */
  async #openChain(after: LogPosition): Promise<boolean> {
    await this.#closeChain();
    const own = this.#generations.find(({ name }) => name === after.generation);
    const chain = own === undefined ? [] : chainFrom(after, own.segments);
    if (chain.length === 0) {
      return own !== undefined && this.#newestTs(after) <= after.ts && this.#newer(after) === undefined;
    }
    this.#open = { rows: behind(rowsOf(this.#target, chain), after), at: after };
    return true;
  }

  /** Returns some of the open rows if they follow the position, or the fault of their segment. */
  async #readOpen(after: LogPosition): Promise<JournalRow[] | string> {
    try {
      return await this.#readOpenRows(after);
    } catch (error) {
      await this.#closeChain();
      if (!(error instanceof LocationError) || error.fault !== "target") throw error;
      // A damaged segment, or one removed after the listing, may be part of a merged one.
      return error.message;
    }
  }

  async #readOpenRows(after: LogPosition): Promise<JournalRow[]> {
    const open = this.#open;
    if (open === null || open.at.seq !== after.seq || open.at.sum !== after.sum) return [];
    const rows: JournalRow[] = [];
    const { followedRows, followedChars } = replicationLimits;
    for (let chars = 0; rows.length < followedRows && chars < followedChars;) {
      const { done, value: row } = await open.rows.next();
      if (done) {
        this.#open = null;
        break;
      }
      rows.push(row);
      chars += row.body.length;
      open.at = { generation: after.generation, seq: row.seq, ts: row.ts, sum: row.sum };
    }
    return rows;
  }

  async #closeChain(): Promise<void> {
    const open = this.#open;
    this.#open = null;
    await open?.rows.return(undefined);
  }

  /** Handles a gap: the missing segments may be listed late. Throws after waiting for them. */
  #onMissing(after: LogPosition, why: string): LogBatch<JournalRow> {
    if (this.#misses++ < this.#latePolls) {
      return {
        items: [],
        newestTs: Math.max(this.#newestTs(after), after.ts + 1),
        checkedAt: this.#polledAt,
      };
    }
    const message =
      `"${this.location}" does not continue after ts ${after.ts} of generation ${after.generation}: ${why}`;
    if (this.#newer(after) !== undefined) throw new LogGapError(message);
    throw new LocationError("target", `${message}, and there is no newer snapshot yet`);
  }

  /** Returns the newest generation with a snapshot ahead of a position. */
  #newer({ generation, seq }: LogPosition): Generation | undefined {
    return newestWithSnapshot(
      this.#generations,
      (name, snapshot) => name > generation || (name === generation && snapshot.seq > seq),
    );
  }

  #newestTs({ generation, ts }: LogPosition): number {
    const newest = this.#generations.at(-1);
    if (newest === undefined || newest.name < generation) return ts;
    const known = [
      ...newest.snapshots.map((snapshot) => snapshot.ts),
      ...newest.segments.map(({ toTs }) => toTs),
    ];
    return known.reduce((a, b) => Math.max(a, b), newest.name === generation ? ts : 0);
  }
}

/** Returns the newest generation with a snapshot, if its newest snapshot satisfies `fits`. */
export function newestWithSnapshot(
  generations: readonly Generation[],
  fits: (generation: string, snapshot: Generation["snapshots"][number]) => boolean = () => true,
): Generation | undefined {
  const newest = generations.findLast(({ snapshots }) => snapshots.length > 0);
  const snapshot = newest?.snapshots.at(-1);
  return newest !== undefined && snapshot !== undefined && fits(newest.name, snapshot) ? newest : undefined;
}

/** Yields the rows after a position, skipping earlier ones of the same segment. */
async function* behind(
  rows: AsyncGenerator<JournalRow>,
  { seq, sum, ts, generation }: LogPosition,
): AsyncGenerator<JournalRow> {
  for await (const row of rows) {
    if (row.seq > seq) yield row;
    else if (row.seq === seq && row.sum !== sum) {
      throw new LocationError("target", `generation ${generation} has another commit with ts ${ts}`);
    }
  }
}
