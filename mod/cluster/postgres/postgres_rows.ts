/**
 * Keeps the leader's rows in the cluster's log. A row is kept when the database says so; where its answer was lost the log is
 * looked at before the row is sent again, so that it is there once or not at all.
 */
import { Buffer } from "node:buffer";
import { setTimeout as wait } from "node:timers/promises";
import type { JournalRow } from "../../engine/mod.ts";
import type { RowKeeper } from "../../functions/host/mod.ts";
import { AwayError, codeOf, type Connection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

type Refusal = NonNullable<Awaited<ReturnType<RowKeeper["keep"]>>>;

export interface PostgresRowsOptions {
  readonly connection: Connection;
  readonly statements: Statements;
  readonly epoch: number;
  /** Behind which row the log begins. */
  readonly firstSeq: number;
  /** The log is another's: this server has to stop being the leader. Called once. */
  readonly onLost: (reason: string) => void;
  readonly waitMs?: number;
}

const LATE: Refusal = {
  message: "The database of the cluster cannot be reached, try again later",
  known: true,
};
const UNKNOWN: Refusal = { message: "It is not known whether the mutation was committed", known: false };

export class PostgresRows implements RowKeeper {
  readonly waitMs: number;
  readonly #options: PostgresRowsOptions;
  /** Since when the database has not answered; `null` while it does. */
  #awaySince: number | null = null;
  /** Set when this server is not the leader any more: nothing is kept then. */
  #lost = Promise.withResolvers<Refusal>();
  #isLost = false;
  /** Whether one row may be in the log without being committed here. */
  #uncertain = false;
  /** Of rows kept by this. */
  #bytes = 0;
  #seq = 0;

  constructor(options: PostgresRowsOptions) {
    this.#options = options;
    this.waitMs = options.waitMs ?? clusterLimits.writeWaitMs;
  }

  /** Since when rows have to wait, by `performance.now()`; `null`: they do not. */
  get awaySince(): number | null {
    return this.#awaySince;
  }

  /** Bytes that were kept, and the newest row. */
  get kept(): { readonly bytes: number; readonly seq: number } {
    return { bytes: this.#bytes, seq: this.#seq };
  }

  async keep(row: JournalRow): Promise<Refusal | null> {
    return await Promise.race([this.#keep(row), this.#lost.promise]);
  }

  /** Rows that wait are refused: this server is not the leader any more, and says so elsewhere. */
  close(): void {
    this.#isLost = true;
    this.#lost.resolve(UNKNOWN);
  }

  async #keep(row: JournalRow): Promise<Refusal | null> {
    const body = Buffer.from(row.body);
    let sent = this.#uncertain;
    while (!this.#isLost) {
      try {
        const kept = await this.#once(row, { body, sent });
        this.#awaySince = null;
        if (!kept) return await this.#stop(`row ${row.seq} of the log is another's`);
        this.#uncertain = false;
        this.#bytes += body.length;
        this.#seq = row.seq;
        return null;
      } catch (error) {
        if (!(error instanceof AwayError)) {
          return await this.#stop(error instanceof Error ? error.message : String(error));
        }
        sent ||= error.asked;
        this.#awaySince ??= performance.now();
        if (performance.now() - this.#awaySince > this.waitMs) {
          // What may still arrive is found by the next row, which then does not fit.
          this.#uncertain ||= sent;
          return sent ? UNKNOWN : LATE;
        }
        await wait(clusterLimits.reconnectMs);
      }
    }
    return UNKNOWN;
  }

  /** Whether the log has the row now. */
  async #once(
    row: JournalRow,
    { body, sent }: { readonly body: Uint8Array; readonly sent: boolean },
  ): Promise<boolean> {
    if (sent) {
      const there = await this.#sumOf(row.seq);
      if (there !== null) return there === row.sum;
    }
    const { connection, statements, epoch, firstSeq } = this.#options;
    const { seq, tsBefore, ts, at, sum } = row;
    try {
      const added = await connection.query(
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
      return added.length === 1;
    } catch (error) {
      if (codeOf(error) !== "23505") throw error;
      // It may be this very row, sent before and late.
      return await this.#sumOf(seq) === sum;
    }
  }

  async #sumOf(seq: number): Promise<string | null> {
    const [row] = await this.#options.connection.query(this.#options.statements.sumOf, seq);
    return typeof row?.["sum"] === "string" ? row["sum"] : null;
  }

  /** Whoever waits is answered when the sockets are closed: clients send again what had no answer. */
  #stop(reason: string): Promise<Refusal> {
    if (!this.#isLost) {
      this.#isLost = true;
      this.#options.onLost(reason);
    }
    return this.#lost.promise;
  }
}
