/**
 * Keeps the leader's rows in the cluster's log. A row is kept when the database says so; where its answer was lost the log is
 * looked at before the row is sent again, so that it is there once or not at all.
 */
import { Buffer } from "node:buffer";
import type { JournalRow } from "../../engine/mod.ts";
import type { RowKeeper } from "../../functions/host/mod.ts";
import { type Clock, steadyClock } from "../../kit/clock.ts";
import { AwayError, codeOf, type Connection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

type Refusal = NonNullable<Awaited<ReturnType<RowKeeper["keep"]>>>;

export interface PostgresRowsOptions {
  readonly connection: Pick<Connection, "query">;
  readonly statements: Statements;
  readonly epoch: number;
  /** Behind which row the log begins. */
  readonly firstSeq: number;
  /** Where this server's database stands, which is where the log ends. */
  readonly at: Pick<JournalRow, "seq" | "sum">;
  /** The log is another's: this server has to stop being the leader. Called once. */
  readonly onLost: (reason: string) => void;
  readonly waitMs?: number;
  readonly clock?: Clock;
}

const LATE: Refusal = {
  message: "The database of the cluster cannot be reached, try again later",
  known: true,
};
const UNKNOWN: Refusal = { message: "It is not known whether the mutation was committed", known: false };

/**
 * Has a connection know the statement for rows, and the database what it needs for that, before there is a row: of an epoch
 * that never was nothing is added. Never rejects.
 */
export async function warmRows(
  connection: Pick<Connection, "query">,
  statements: Pick<Statements, "append">,
): Promise<void> {
  await connection.query(statements.append, -1, 0, 0, 0, 0, "", Buffer.from(""), 0).catch(() => {});
}

export class PostgresRows implements RowKeeper {
  readonly waitMs: number;
  readonly #options: PostgresRowsOptions;
  readonly #clock: Clock;
  /** Since when the database has not answered; `null` while it does. */
  #awaySince: number | null = null;
  /** Set when this server is not the leader any more: nothing is kept then. */
  #isLost = false;
  #closed = false;
  /** Answer whoever waits. */
  readonly #waiting = new Set<(refusal: Refusal) => void>();
  /** The newest call of `keep`, settled or not. */
  #keeping: Promise<unknown> = Promise.resolve();
  /** Where the rows end that were kept. */
  #end: Pick<JournalRow, "seq" | "sum">;
  /** Whether one row may be in the log without being committed here. */
  #uncertain = false;
  /** Of rows kept by this. */
  #bytes = 0;
  #seq = 0;

  constructor(options: PostgresRowsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
    this.#end = options.at;
    this.waitMs = options.waitMs ?? clusterLimits.writeWaitMs;
  }

  /** Since when rows have to wait, by its clock; `null`: they do not. */
  get awaySince(): number | null {
    return this.#awaySince;
  }

  /** Bytes that were kept, and the newest row. */
  get kept(): { readonly bytes: number; readonly seq: number } {
    return { bytes: this.#bytes, seq: this.#seq };
  }

  /** Whether the log was found to be another's, or this was closed. */
  get isLost(): boolean {
    return this.#isLost;
  }

  keep(row: JournalRow): Promise<Refusal | null> {
    const kept = this.#answered(() => this.#keep(row));
    this.#keeping = kept;
    return kept;
  }

  begins({ seq, sum }: Pick<JournalRow, "seq" | "sum">): Promise<Refusal | null> {
    return this.#answered(async () => {
      // Of a writer that was lost meanwhile.
      await this.#keeping;
      const { seq: end, sum: endSum } = this.#end;
      if (seq === end && sum === endSum) return null;
      return this.#lose(`row ${end} of the log is not in this server's database, which is at ${seq}`);
    });
  }

  /** Rows that wait are refused: this server is not the leader any more, and says so elsewhere. */
  close(): void {
    this.#isLost = this.#closed = true;
    for (const answer of this.#waiting) answer(UNKNOWN);
    this.#waiting.clear();
  }

  /** When this server is not the leader any more, whoever waits is answered by `close`: clients send again what had no answer. */
  async #answered(find: () => Promise<Refusal | null | "lost">): Promise<Refusal | null> {
    if (this.#closed) return UNKNOWN;
    const { promise, resolve } = Promise.withResolvers<Refusal | null>();
    this.#waiting.add(resolve);
    void find().then((answer) => answer === "lost" ? undefined : resolve(answer));
    try {
      return await promise;
    } finally {
      this.#waiting.delete(resolve);
    }
  }

  async #keep(row: JournalRow): Promise<Refusal | null | "lost"> {
    const body = Buffer.from(row.body);
    let looks = this.#uncertain;
    /** Whether this row may be in the log. */
    let sent = false;
    while (!this.#isLost) {
      try {
        const kept = await this.#once(row, { body, looks });
        this.#awaySince = null;
        if (!kept) return this.#lose(`row ${row.seq} of the log is another's`);
        this.#uncertain = false;
        this.#bytes += body.length;
        this.#seq = row.seq;
        this.#end = row;
        return null;
      } catch (error) {
        // Whatever else the database says of the statement, nothing was added, and whose the log is was not told.
        sent ||= error instanceof AwayError && error.asked;
        looks ||= sent;
        this.#awaySince ??= this.#clock.now();
        if (this.#clock.now() - this.#awaySince > this.waitMs) {
          // What may still arrive is found by the next row, which then does not fit.
          this.#uncertain ||= sent;
          return sent ? UNKNOWN : LATE;
        }
        await new Promise<void>((resolve) => this.#clock.after(clusterLimits.reconnectMs, resolve));
      }
    }
    return UNKNOWN;
  }

  /** Whether the log has the row now. */
  async #once(
    row: JournalRow,
    { body, looks }: { readonly body: Uint8Array; readonly looks: boolean },
  ): Promise<boolean> {
    if (looks) {
      const there = await this.#sumOf(row.seq);
      if (there === row.sum) this.#tell();
      if (there !== null) return there === row.sum;
    }
    const { connection, statements, epoch, firstSeq } = this.#options;
    const { seq, tsBefore, ts, at, sum } = row;
    try {
      const adding = connection.query(
        statements.append,
        epoch,
        seq,
        tsBefore,
        ts,
        at,
        sum,
        body,
        firstSeq,
      );
      // The database comes to it behind the row, and has answered for that by then.
      this.#tell();
      return (await adding).length === 1;
    } catch (error) {
      if (codeOf(error) !== "23505") throw error;
      // It may be this very row, sent before and late.
      return await this.#sumOf(seq) === sum;
    }
  }

  /** That there is a new row. Whoever does not hear of it looks all the same, soon. */
  #tell(): void {
    const { connection, statements } = this.#options;
    void connection.query(statements.tell).catch(() => {});
  }

  async #sumOf(seq: number): Promise<string | null> {
    try {
      const [row] = await this.#options.connection.query(this.#options.statements.sumOf, seq);
      return typeof row?.["sum"] === "string" ? row["sum"] : null;
    } catch (error) {
      if (!(error instanceof AwayError)) throw error;
      // To look sends no row.
      throw new AwayError(error.message, { asked: false, cause: error });
    }
  }

  #lose(reason: string): "lost" {
    if (!this.#isLost) {
      this.#isLost = true;
      this.#options.onLost(reason);
    }
    return "lost";
  }
}
