/** The lease of a cluster: who is the leader, under which epoch. Only the database's clock counts. */
import { type Clock, steadyClock, type Timer } from "../../kit/clock.ts";
import { AwayError, type Connection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

export interface LeaseOptions {
  readonly connection: Pick<Connection, "query">;
  /** By which it is renewed and released as well when the other one has no answer for long; not at all when absent. */
  readonly second?: Pick<Connection, "query">;
  /** Makes one more, for when neither has. */
  readonly fresh?: () => Pick<Connection, "query"> & AsyncDisposable;
  readonly statements: Statements;
  /** Names this run of this server. */
  readonly holder: string;
  readonly leaseMs?: number;
  /** Called when another one may have it, or has: before that it was this server's alone. */
  readonly onLapse?: () => void;
  readonly clock?: Clock;
}

export interface LeaseHolder {
  readonly epoch: number;
  readonly address: string;
  readonly isThis: boolean;
  /** For how long it is kept unless it is renewed; negative when it has ended. */
  readonly leftMs: number;
}

/** Of a lease, by which it is looked on as over before it is: what is ended then has ended when another one takes it. */
const EARLY_SHARE = 0.1;

export class Lease {
  readonly #options: LeaseOptions;
  readonly #clock: Clock;
  /** Until when nobody else can have it, as long as the database's clock goes on evenly. */
  #sureUntil = -Infinity;
  /** Rings then. */
  #lapse: Timer | null = null;
  /** Set by `take`, `null` again when it was lost or given up. */
  #epoch: number | null = null;
  /** Where other servers reach this one while it leads. */
  address = "";

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
  }

  /** Whether nobody else can have it by now, wherever the database is. */
  get isSure(): boolean {
    return this.#epoch !== null && this.#clock.now() < this.#sureUntil;
  }

  /** `null`: this server does not have it, as far as it knows. */
  get epoch(): number | null {
    return this.#epoch;
  }

  /** Takes it, if nobody has it any more. Throws an `AwayError`. */
  async take(): Promise<boolean> {
    const { connection, statements, holder, leaseMs = clusterLimits.leaseMs } = this.#options;
    const askedAt = this.#clock.now();
    const [row] = await connection.query(statements.take, holder, this.address, leaseMs);
    if (row === undefined) return false;
    this.#epoch = Number(row["epoch"]);
    this.#keptFrom(askedAt);
    return true;
  }

  /**
   * Keeps it. Gives back how many other servers were heard of lately, none when it was given up meanwhile; `null`: another
   * one has taken it, and it is lost. Throws an `AwayError`.
   */
  async renew(): Promise<{ readonly others: number } | null> {
    const { statements, holder, leaseMs = clusterLimits.leaseMs } = this.#options;
    const epoch = this.#epoch;
    if (epoch === null) return null;
    const { answer: [row], askedAt } = await this.#askAll((connection) =>
      connection.query(statements.renew, epoch, holder, leaseMs, clusterLimits.heardMs)
    );
    if (this.#epoch !== epoch) return { others: 0 };
    if (row !== undefined) {
      this.#keptFrom(askedAt);
      return { others: Number(row["others"]) };
    }
    this.#lose();
    return null;
  }

  /** Who has it, or had it last; `null` when it was given up, or nobody ever had it. Throws an `AwayError`. */
  async holder(): Promise<LeaseHolder | null> {
    const { connection, statements, holder } = this.#options;
    const [row] = await connection.query(statements.lease);
    if (row === undefined || row["held"] !== true) return null;
    return {
      epoch: Number(row["epoch"]),
      address: String(row["address"]),
      isThis: row["holder"] === holder,
      leftMs: Number(row["left_ms"]),
    };
  }

  /** Leaves it to others, at once. It ends by itself where that cannot be said. */
  async release(): Promise<void> {
    const epoch = this.#epoch;
    this.#epoch = null;
    this.#lapse?.cancel();
    if (epoch === null) return;
    const { statements, holder } = this.#options;
    try {
      await this.#askAll((connection) => connection.query(statements.release, epoch, holder));
    } catch (error) {
      if (!(error instanceof AwayError)) throw error;
    }
  }

  /** Whichever answers first; several may, for what is asked says the same again. Gives back when that one was asked. */
  async #askAll<Answer>(
    ask: (connection: Pick<Connection, "query">) => Promise<Answer>,
  ): Promise<{ readonly answer: Answer; readonly askedAt: number }> {
    const { connection, second, fresh } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<
      { readonly answer: Answer; readonly askedAt: number }
    >();
    const made: AsyncDisposable[] = [];
    let waiting = 0;
    let isOver = false;
    const by = (way: Pick<Connection, "query">) => {
      waiting++;
      const askedAt = this.#clock.now();
      ask(way).then((answer) => resolve({ answer, askedAt }), (error) => {
        waiting--;
        if (!(error instanceof AwayError)) return reject(error);
        // At once where the first is known to be lost.
        bySecond();
        if (waiting === 0) reject(error);
      });
    };
    let mayAskSecond = second !== undefined;
    const bySecond = () => {
      if (!mayAskSecond || isOver || second === undefined) return;
      mayAskSecond = false;
      by(second);
    };
    const timers = [
      this.#clock.after(clusterLimits.leaseAnswerMs, bySecond),
      this.#clock.after(2 * clusterLimits.leaseAnswerMs, () => {
        if (isOver || fresh === undefined) return;
        const third = fresh();
        made.push(third);
        by(third);
      }),
    ];
    by(connection);
    try {
      return await promise;
    } finally {
      isOver = true;
      for (const timer of timers) timer.cancel();
      // Nobody waits for its end.
      for (const third of made) void third[Symbol.asyncDispose]();
    }
  }

  /** Reckoned from before it was asked for: by the database it ends later. */
  #keptFrom(askedAt: number): void {
    const { leaseMs = clusterLimits.leaseMs, onLapse } = this.#options;
    this.#sureUntil = askedAt + leaseMs * (1 - EARLY_SHARE);
    this.#lapse?.cancel();
    if (onLapse === undefined) return;
    this.#lapse = this.#clock.after(Math.max(0, this.#sureUntil - this.#clock.now()), onLapse);
  }

  #lose(): void {
    this.#epoch = null;
    this.#lapse?.cancel();
    this.#options.onLapse?.();
  }
}
