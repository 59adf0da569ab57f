/** Reads the log of a cluster, for its followers. */
import { type CommitLog, type LogBatch, LogGapError, type LogPosition } from "../../ops/replication/mod.ts";
import type { JournalRow } from "../../engine/mod.ts";
import { type Clock, pause, steadyClock } from "../../kit/clock.ts";
import { codeOf, type PostgresConnection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

export interface PostgresLogOptions {
  readonly connection: Pick<PostgresConnection, "query">;
  readonly statements: Statements;
  readonly location: string;
  readonly generation: string;
  /** Called before each read; resolves when there may be newer rows, after a timeout, or on an abort. */
  readonly more: () => Wait;
  /** Whether reads wait under load, so that more rows are applied together. */
  readonly gathers?: boolean;
  readonly clock?: Clock;
  readonly now?: () => number;
}

type Wait = (wait: { readonly ms: number; readonly signal: AbortSignal }) => Promise<void>;

interface End {
  readonly seq: number;
  /** Waits for rows since that read. */
  readonly more: Wait;
  /** Time until which the next read waits for further rows. */
  readonly gatherUntil: number;
}

const { now: systemNow } = Date;

/** SQLSTATE `character_not_in_repertoire`. */
const NO_TEXT = "22021";

export class PostgresLog implements CommitLog<JournalRow> {
  readonly location: string;
  readonly #options: PostgresLogOptions;
  readonly #clock: Clock;
  /** `null` if the last read did not reach the end. */
  #end: End | null = null;

  constructor(options: PostgresLogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
    this.location = options.location;
  }

  async read(
    after: LogPosition,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<LogBatch<JournalRow>> {
    const { generation, more, gathers = false } = this.#options;
    if (after.generation !== generation) throw new LogGapError("The database has another history");
    // Wait first: a second read behind each row would find nothing.
    if (this.#end?.seq === after.seq) await this.#waitForRows(this.#end, signal);
    signal.throwIfAborted();
    this.#end = null;
    const wait = more();
    const readAt = this.#clock.now();
    const { end, ...found } = await this.#readOnce(after);
    const seq = after.seq + found.items.length;
    const commits = (found.items.at(-1)?.ts ?? after.ts) - after.ts;
    if (seq === end) {
      this.#end = { seq, more: wait, gatherUntil: readAt + (gathers ? gatherMs(commits) : 0) };
    }
    return found;
  }

  async #waitForRows({ more, gatherUntil }: End, signal: AbortSignal): Promise<void> {
    await more({ ms: clusterLimits.pollMs, signal });
    const ms = gatherUntil - this.#clock.now();
    if (ms > 0) await pause(this.#clock, ms, signal);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  /** Returns the rows with the number of the last row of the log. */
  async #readOnce(after: LogPosition): Promise<LogBatch<JournalRow> & { readonly end: number }> {
    const { connection, statements, now = systemNow } = this.#options;
    const { rowsRead, rowBytesRead } = clusterLimits;
    const checkedAt = now();
    const rows = await connection.query(statements.read, after.seq, rowsRead, rowBytesRead).catch((error) => {
      if (codeOf(error) !== NO_TEXT) throw error;
      throw new LogGapError("A row of the log is damaged: it is not valid text", { cause: error });
    });
    const items: JournalRow[] = [];
    for (const row of rows) {
      const seq = Number(row["seq"]);
      if (seq === after.seq) {
        if (row["sum"] !== after.sum) {
          throw new LogGapError(`Row ${seq} of the log differs from the applied one`);
        }
        continue;
      }
      if (seq !== after.seq + 1 + items.length) {
        throw new LogGapError(`The log now begins with row ${seq}`);
      }
      items.push(rowOf(seq, row));
    }
    const [first] = rows;
    if (first !== undefined) {
      const newestTs = Math.max(after.ts, Number(first["end_ts"]));
      return { items, newestTs, checkedAt, end: Number(first["end_seq"]) };
    }
    const [end] = await connection.query(statements.end);
    const endSeq = Number(end?.["seq"] ?? after.seq);
    if (endSeq < after.seq) {
      throw new LogGapError(`The log ends with row ${endSeq}, before the last applied one`);
    }
    return { items, newestTs: Math.max(after.ts, Number(end?.["ts"] ?? 0)), checkedAt, end: endSeq };
  }
}

/** Delay of the next read after a read with this number of commits. */
function gatherMs(commits: number): number {
  const { gatherMsPerCommit, gatherMsMax } = clusterLimits;
  return Math.min(gatherMsMax, commits * gatherMsPerCommit);
}

export function rowOf(seq: number, row: Record<string, unknown>): JournalRow {
  const { ts_before, ts, at, sum, text, bytes } = row;
  const body = bytes instanceof Uint8Array ? decoder.decode(bytes) : text;
  if (typeof body !== "string" || typeof sum !== "string") {
    throw new TypeError(`Row ${seq} of the log cannot be read`);
  }
  return {
    seq,
    tsBefore: Number(ts_before),
    ts: Number(ts),
    at: Number(at),
    sum,
    body,
  };
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
