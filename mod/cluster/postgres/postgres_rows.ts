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
const NOT_LEADER: Refusal = {
  message: "This server does not lead its cluster any more, try again in a moment",
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

interface Waiting {
  readonly answer: (refusal: Refusal) => void;
  /** Whether the row may be in the log. */
  sent: boolean;
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
  /** Calls that wait for an answer. */
  readonly #waiting = new Set<Waiting>();
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

  keep(row: JournalRow | null): Promise<Refusal | null> {
    const kept = this.#answered((waiting) => this.#keep(row, waiting));
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

  /** Refuses the rows that wait, and those that come: this server does not lead any more. */
  close(): void {
    this.#isLost = this.#closed = true;
    for (const { answer, sent } of this.#waiting) answer(sent ? UNKNOWN : NOT_LEADER);
    this.#waiting.clear();
  }

  /**
   * A server that has lost its lease answers nothing until `close`: by then its sockets and links are closed, and what they
   * asked goes to the next leader.
   */
  async #answered(find: (waiting: Waiting) => Promise<Refusal | null | "lost">): Promise<Refusal | null> {
    if (this.#closed) return NOT_LEADER;
    const { promise, resolve } = Promise.withResolvers<Refusal | null>();
    const waiting: Waiting = { answer: resolve, sent: false };
    this.#waiting.add(waiting);
    void find(waiting).then((answer) => answer === "lost" ? undefined : resolve(answer));
    try {
      return await promise;
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  async #keep(row: JournalRow | null, waiting: Waiting): Promise<Refusal | null | "lost"> {
    const body = Buffer.from(row?.body ?? "");
    let looks = this.#uncertain;
    while (!this.#isLost) {
      const before = waiting.sent;
      // Until the statement is answered.
      waiting.sent = row !== null;
      try {
        const kept = row === null ? await this.#leads() : await this.#once(row, { body, looks });
        this.#awaySince = null;
        if (!kept) {
          // Another row is in its place, or another epoch: a late statement adds nothing either.
          waiting.sent = false;
          return this.#lose(
            row === null ? "the lease or the log is another's" : `row ${row.seq} of the log is another's`,
          );
        }
        if (row === null) return null;
        this.#uncertain = false;
        this.#bytes += body.length;
        this.#seq = row.seq;
        this.#end = row;
        return null;
      } catch (error) {
        // Whatever else the database says of the statement, nothing was added, and whose the log is was not told.
        waiting.sent = before || row !== null && error instanceof AwayError && error.asked;
        looks ||= waiting.sent;
        this.#awaySince ??= this.#clock.now();
        if (this.#clock.now() - this.#awaySince > this.waitMs) {
          // What may still arrive is found by the next row, which then does not fit.
          this.#uncertain ||= waiting.sent;
          return waiting.sent ? UNKNOWN : LATE;
        }
        await new Promise<void>((resolve) => this.#clock.after(clusterLimits.reconnectMs, resolve));
      }
    }
    return "lost";
  }

  /** Whether this server has the lease, and everything that is in the log. */
  async #leads(): Promise<boolean> {
    const { connection, statements, epoch } = this.#options;
    return (await connection.query(statements.leads, epoch, this.#end.seq)).length === 1;
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
