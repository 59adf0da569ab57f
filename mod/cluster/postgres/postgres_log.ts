/** The log of a cluster, as its followers read it. */
import { type CommitLog, LogGapError, type LogPart, type LogPosition } from "../../ops/replication/mod.ts";
import type { JournalRow } from "../../engine/mod.ts";
import { type Clock, steadyClock } from "../../kit/clock.ts";
import { codeOf, type Connection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

export interface PostgresLogOptions {
  readonly connection: Pick<Connection, "query">;
  readonly statements: Statements;
  readonly place: string;
  readonly generation: string;
  /** Asked before it is read: what it gives resolves when there may be more since, when the time is over, or when it is aborted. */
  readonly more: () => Wait;
  /** The same for what makes it wait no longer for rows to come together; when absent it does not wait for that. */
  readonly hurry?: () => Wait;
  /** Whether nobody looks at what is applied: then more comes together. */
  readonly unseen?: () => boolean;
  readonly clock?: Clock;
  readonly now?: () => number;
}

type Wait = (wait: { readonly ms: number; readonly signal: AbortSignal }) => Promise<void>;

/** The end of the log as it was read last. */
interface End {
  readonly seq: number;
  /** Waits for what has come since. */
  readonly more: Wait;
  /** Waits for more to come together, up to a moment of the clock. */
  readonly gather: Wait | null;
  readonly gatherUntil: number;
}

const { now: systemNow } = Date;

/** SQLSTATE `character_not_in_repertoire`. */
const NO_TEXT = "22021";

export class PostgresLog implements CommitLog<JournalRow> {
  readonly place: string;
  readonly #options: PostgresLogOptions;
  readonly #clock: Clock;
  /** `null`: it was not read to its end. */
  #end: End | null = null;

  constructor(options: PostgresLogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
    this.place = options.place;
  }

  async read(after: LogPosition, { signal }: { readonly signal: AbortSignal }): Promise<LogPart<JournalRow>> {
    const { generation, more, hurry, unseen } = this.#options;
    if (after.generation !== generation) throw new LogGapError("The database is of another history");
    // Each row costs one look, not another one behind it that finds nothing.
    if (this.#end?.seq === after.seq) await this.#comeTogether(this.#end, signal);
    signal.throwIfAborted();
    this.#end = null;
    const waits = { more: more(), gather: hurry?.() ?? null };
    const readAt = this.#clock.now();
    const { end, ...found } = await this.#readOnce(after);
    const seq = after.seq + found.items.length;
    const commits = (found.items.at(-1)?.ts ?? after.ts) - after.ts;
    if (seq === end) {
      this.#end = { ...waits, seq, gatherUntil: readAt + gatherMs(commits, unseen?.() ?? false) };
    }
    return found;
  }

  async #comeTogether({ more, gather, gatherUntil }: End, signal: AbortSignal): Promise<void> {
    await more({ ms: clusterLimits.pollMs, signal });
    const ms = gatherUntil - this.#clock.now();
    if (gather !== null && ms > 0) await gather({ ms, signal });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  /** With the number of the last row. */
  async #readOnce(after: LogPosition): Promise<LogPart<JournalRow> & { readonly end: number }> {
    const { connection, statements, now = systemNow } = this.#options;
    const { rowsRead, rowBytesRead } = clusterLimits;
    const lookedAt = now();
    const rows = await connection.query(statements.read, after.seq, rowsRead, rowBytesRead).catch((error) => {
      if (codeOf(error) !== NO_TEXT) throw error;
      throw new LogGapError("A row of the log is damaged: its bytes are no text", { cause: error });
    });
    const items: JournalRow[] = [];
    for (const row of rows) {
      const seq = Number(row["seq"]);
      if (seq === after.seq) {
        if (row["sum"] !== after.sum) {
          throw new LogGapError(`Row ${seq} of the log is another than was applied`);
        }
        continue;
      }
      if (seq !== after.seq + 1 + items.length) {
        throw new LogGapError(`The log begins with row ${seq} by now`);
      }
      items.push(rowOf(seq, row));
    }
    const [first] = rows;
    if (first !== undefined) {
      const newestTs = Math.max(after.ts, Number(first["end_ts"]));
      return { items, newestTs, lookedAt, end: Number(first["end_seq"]) };
    }
    const [end] = await connection.query(statements.end);
    const endSeq = Number(end?.["seq"] ?? after.seq);
    if (endSeq < after.seq) {
      throw new LogGapError(`The log ends with row ${endSeq}, before what was applied`);
    }
    return { items, newestTs: Math.max(after.ts, Number(end?.["ts"] ?? 0)), lookedAt, end: endSeq };
  }
}

/** For how long rows come together behind so many commits. */
function gatherMs(commits: number, unseen: boolean): number {
  const { gatherMsPerCommit, gatherMsMax, unseenGatherMsPerCommit, unseenGatherMsMax } = clusterLimits;
  return unseen
    ? Math.min(unseenGatherMsMax, commits * unseenGatherMsPerCommit)
    : Math.min(gatherMsMax, commits * gatherMsPerCommit);
}

/** A row of the log as a journal has it. */
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
