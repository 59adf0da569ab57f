/** The lease of a cluster names the leader and its epoch. It ends by the database's clock. */
import { type Clock, steadyClock, type Timer } from "../../kit/clock.ts";
import { AwayError, type PostgresConnection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

export interface LeaseOptions {
  readonly connection: Pick<PostgresConnection, "query">;
  /** Also used to renew and release the lease if `connection` does not answer for a second. */
  readonly second?: Pick<PostgresConnection, "query">;
  /** Opens a third connection, for when neither answers. */
  readonly fresh?: () => Pick<PostgresConnection, "query"> & AsyncDisposable;
  readonly statements: Statements;
  /** Identifies this process. */
  readonly holder: string;
  readonly leaseMs?: number;
  /** Called when another server may have the lease, or has it. */
  readonly onLapse?: () => void;
  readonly clock?: Clock;
}

export interface LeaseHolder {
  readonly epoch: number;
  readonly address: string;
  /** PEM text of the certificate of its links. */
  readonly certificate: string;
  readonly isThis: boolean;
  /** Time to its end without a renewal; negative after its end. */
  readonly leftMs: number;
}

/** Share of the lease by which it counts as expired early, so that work ends before another server leads. */
const EARLY_SHARE = 0.1;

export class Lease {
  readonly #options: LeaseOptions;
  readonly #clock: Clock;
  /** Time until which no other server can have the lease, unless the database's clock jumps. */
  #sureUntil = -Infinity;
  /** Runs `onLapse` at that time. */
  #lapse: Timer | null = null;
  /** Set by `take`; `null` after the lease was lost or released. */
  #epoch: number | null = null;
  /** Published with the lease: where and how other servers reach this one while it leads. */
  published = { address: "", certificate: "" };

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
  }

  /** Whether no other server can have the lease, also while the database is unreachable. */
  get isSure(): boolean {
    return this.#epoch !== null && this.#clock.now() < this.#sureUntil;
  }

  /** `null` if this server does not have the lease, as far as it knows. */
  get epoch(): number | null {
    return this.#epoch;
  }

  /** Acquires the lease if it has ended. Throws an `AwayError`. */
  async take(): Promise<boolean> {
    const { connection, statements, holder, leaseMs = clusterLimits.leaseMs } = this.#options;
    const { address, certificate } = this.published;
    const askedAt = this.#clock.now();
    const [row] = await connection.query(statements.take, holder, address, leaseMs, certificate);
    if (row === undefined) return false;
    this.#epoch = Number(row["epoch"]);
    this.#keptFrom(askedAt);
    return true;
  }

  /** Renews the lease. Returns the number of other live servers, `null` if another has it. Throws an `AwayError`. */
  async renew(): Promise<{ readonly others: number } | null> {
    const { statements, holder, leaseMs = clusterLimits.leaseMs } = this.#options;
    const epoch = this.#epoch;
    if (epoch === null) return null;
    const { answer: [row], askedAt } = await this.#askAll((connection) =>
      connection.query(statements.renew, epoch, holder, leaseMs, clusterLimits.silentMs)
    );
    if (this.#epoch !== epoch) return { others: 0 };
    if (row !== undefined) {
      this.#keptFrom(askedAt);
      return { others: Number(row["others"]) };
    }
    this.#lose();
    return null;
  }

  /** Returns the last holder; `null` if the lease was released or never taken. Throws an `AwayError`. */
  async holder(): Promise<LeaseHolder | null> {
    const { connection, statements, holder } = this.#options;
    const [row] = await connection.query(statements.lease);
    if (row === undefined || row["held"] !== true) return null;
    return {
      epoch: Number(row["epoch"]),
      address: String(row["address"]),
      certificate: String(row["certificate"]),
      isThis: row["holder"] === holder,
      leftMs: Number(row["left_ms"]),
    };
  }

  /** Releases the lease. If the database is unreachable, the lease expires. */
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

  /** Runs an idempotent statement on one connection after the other, until one answers. Returns when that one was asked. */
  async #askAll<Answer>(
    ask: (connection: Pick<PostgresConnection, "query">) => Promise<Answer>,
  ): Promise<{ readonly answer: Answer; readonly askedAt: number }> {
    const { connection, second, fresh } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<
      { readonly answer: Answer; readonly askedAt: number }
    >();
    const made: AsyncDisposable[] = [];
    let waiting = 0;
    let isOver = false;
    const by = (way: Pick<PostgresConnection, "query">) => {
      waiting++;
      const askedAt = this.#clock.now();
      ask(way).then((answer) => resolve({ answer, askedAt }), (error) => {
        waiting--;
        if (!(error instanceof AwayError)) return reject(error);
        // Do not wait if the first connection is lost.
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
      // Closed in the background.
      for (const third of made) void third[Symbol.asyncDispose]();
    }
  }

  /** Counts from before the request, so that the lease ends later in the database. */
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
