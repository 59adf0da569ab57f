/** Appends the leader's rows to the log. After a lost response it checks the log first, so a row is there once at most. */
import { Buffer } from "node:buffer";
import type { JournalRow } from "../../engine/mod.ts";
import type { CommitAppender } from "../../functions/host/mod.ts";
import { type Clock, pause, steadyClock } from "../../kit/clock.ts";
import { AwayError, codeOf, type PostgresConnection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

type Refusal = NonNullable<Awaited<ReturnType<CommitAppender["append"]>>>;

export interface PostgresRowsOptions {
  readonly connection: Pick<PostgresConnection, "query">;
  readonly statements: Statements;
  readonly epoch: number;
  /** Number of the row before the first one of the log. */
  readonly firstSeq: number;
  /** Position of this server's database, which is the end of the log. */
  readonly at: Pick<JournalRow, "seq" | "sum">;
  /** Called once when another server has written to the log: this server must stop leading. */
  readonly onLost: (reason: string) => void;
  readonly waitMs?: number;
  readonly clock?: Clock;
}

const LATE: Refusal = {
  message: "The database of the cluster is unreachable. Try again later",
  known: true,
};
const NOT_LEADER: Refusal = {
  message: "This server no longer leads its cluster. Try again in a moment",
  known: true,
};
const UNKNOWN: Refusal = { message: "It is not known whether the mutation was committed", known: false };

interface Waiting {
  readonly answer: (refusal: Refusal) => void;
  /** Whether the row may be in the log. */
  sent: boolean;
}

export class PostgresRows implements CommitAppender {
  readonly waitMs: number;
  readonly #options: PostgresRowsOptions;
  readonly #clock: Clock;
  /** Start of the current outage of the database; `null` while it answers. */
  #awaySince: number | null = null;
  /** Set when this server no longer leads. Rows are then refused. */
  #isLost = false;
  #closed = false;
  /** Calls without an answer. */
  readonly #waiting = new Set<Waiting>();
  /** The newest call of `append`, pending or settled. */
  #appending: Promise<unknown> = Promise.resolve();
  /** The newest appended row. */
  #end: Pick<JournalRow, "seq" | "sum">;
  /** Whether the log may contain a row that is not committed here. */
  #uncertain = false;
  /** Bytes of the rows appended by this leader. */
  #bytes = 0;
  #seq = 0;

  constructor(options: PostgresRowsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
    this.#end = options.at;
    this.waitMs = options.waitMs ?? clusterLimits.writeWaitMs;
  }

  /** Start of the current outage by the clock; `null` if rows do not wait. */
  get awaySince(): number | null {
    return this.#awaySince;
  }

  /** Appended bytes, and the newest row. */
  get appended(): { readonly bytes: number; readonly seq: number } {
    return { bytes: this.#bytes, seq: this.#seq };
  }

  /** Whether another server has written to the log, or this was closed. */
  get isLost(): boolean {
    return this.#isLost;
  }

  append(row: JournalRow | null): Promise<Refusal | null> {
    const appended = this.#answered((waiting) => this.#append(row, waiting));
    this.#appending = appended;
    return appended;
  }

  begins({ seq, sum }: Pick<JournalRow, "seq" | "sum">): Promise<Refusal | null> {
    return this.#answered(async () => {
      // A lost writer may have sent a row.
      await this.#appending;
      const { seq: end, sum: endSum } = this.#end;
      if (seq === end && sum === endSum) return null;
      return this.#lose(`row ${end} of the log is missing in this server's database, which is at row ${seq}`);
    });
  }

  /** Refuses waiting and further rows: this server no longer leads. */
  close(): void {
    this.#isLost = this.#closed = true;
    for (const { answer, sent } of this.#waiting) answer(sent ? UNKNOWN : NOT_LEADER);
    this.#waiting.clear();
  }

  /** After a lost lease, calls are answered only at `close`: clients repeat their requests at the next leader. */
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

  async #append(row: JournalRow | null, waiting: Waiting): Promise<Refusal | null | "lost"> {
    const body = Buffer.from(row?.body ?? "");
    let checksLog = this.#uncertain;
    while (!this.#isLost) {
      const before = waiting.sent;
      // Until the statement has a response.
      waiting.sent = row !== null;
      try {
        const appended = row === null
          ? await this.#leads()
          : await this.#appendOnce(row, { body, checksLog });
        this.#awaySince = null;
        if (!appended) {
          // The log has another row or another epoch, so a late statement appends nothing either.
          waiting.sent = false;
          return this.#lose(
            row === null
              ? "another server has the lease, or has written to the log"
              : `row ${row.seq} of the log is from another server`,
          );
        }
        if (row === null) return null;
        this.#uncertain = false;
        this.#bytes += body.length;
        this.#seq = row.seq;
        this.#end = row;
        return null;
      } catch (error) {
        // After any other error of the database, nothing was appended, and the owner of the log is unknown.
        waiting.sent = before || row !== null && error instanceof AwayError && error.asked;
        checksLog ||= waiting.sent;
        this.#awaySince ??= this.#clock.now();
        if (this.#clock.now() - this.#awaySince > this.waitMs) {
          // If the row arrives late, the next one does not match.
          this.#uncertain ||= waiting.sent;
          return waiting.sent ? UNKNOWN : LATE;
        }
        await pause(this.#clock, clusterLimits.reconnectMs);
      }
    }
    return "lost";
  }

  /** Returns whether this server has the lease and all rows of the log. */
  async #leads(): Promise<boolean> {
    const { connection, statements, epoch } = this.#options;
    return (await connection.query(statements.leads, epoch, this.#end.seq)).length === 1;
  }

  /** Appends the row. Returns whether the log contains it. */
  async #appendOnce(
    row: JournalRow,
    { body, checksLog }: { readonly body: Uint8Array; readonly checksLog: boolean },
  ): Promise<boolean> {
    if (checksLog) {
      const there = await this.#sumOf(row.seq);
      if (there === row.sum) this.#notify();
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
      // Pipelined after the row.
      this.#notify();
      return (await adding).length === 1;
    } catch (error) {
      if (codeOf(error) !== "23505") throw error;
      // It may be this row, from an earlier attempt.
      return await this.#sumOf(seq) === sum;
    }
  }

  /** Notifies followers of a new row. They also poll, so a lost notification only delays them. */
  #notify(): void {
    const { connection, statements } = this.#options;
    void connection.query(statements.notify).catch(() => {});
  }

  async #sumOf(seq: number): Promise<string | null> {
    try {
      const [row] = await this.#options.connection.query(this.#options.statements.sumOf, seq);
      return typeof row?.["sum"] === "string" ? row["sum"] : null;
    } catch (error) {
      if (!(error instanceof AwayError)) throw error;
      // The query appends nothing.
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
