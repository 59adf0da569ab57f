/** Follows a log: reads new rows, applies them, and reports its lag. */
import { setTimeout as wait } from "node:timers/promises";
import type { Log } from "../../../kit/log.ts";
import { replicationLimits } from "../../limits.ts";

/** A position in a history, after a row. */
export interface LogPosition {
  readonly generation: string;
  readonly seq: number;
  readonly ts: number;
  /** Chained checksum of the row: at most one of two histories continues from it. */
  readonly sum: string;
}

/** Result of one read. */
export interface LogBatch<Item> {
  /** Rows after the position, in order and without a gap. Bounded; empty when there are none. */
  readonly items: readonly Item[];
  /** The newest known commit of the log, also beyond these rows. */
  readonly newestTs: number;
  /** Time at which the log was checked for it, ms since the epoch by the clock of the reader. */
  readonly checkedAt: number;
}

/** A log of commits. {@linkcode Follower} depends on this interface only, not on the location of the commits. */
export interface CommitLog<Item> extends AsyncDisposable {
  /** Display name. */
  readonly location: string;
  /**
   * Returns the rows after a position: at once when there are some, otherwise after a pause. One call at a time. Throws
   * a `LogGapError` when the log does not continue from there and the follower must start from a newer state. Any other
   * error is reported, and the read is retried later. Rejects soon after an abort.
   */
  read(after: LogPosition, options: { readonly signal: AbortSignal }): Promise<LogBatch<Item>>;
}

/** The log does not continue from the position of a follower, which must start from a newer state. */
export class LogGapError extends Error {
  override readonly name = "LogGapError";
}

export interface FollowerDatabase<Item> {
  /** The last applied row. */
  readonly position: () => LogPosition;
  /**
   * Applies the rows after the position. Throws a `LogGapError` if they do not continue it. After any other error, the
   * follower retries from the position at that time.
   */
  readonly apply: (items: readonly Item[]) => Promise<void>;
  /** Starts from a newer state. The follower ends when this resolves. Rejects if there is no newer state. */
  readonly renew: (reason: string, signal: AbortSignal) => Promise<void>;
}

export interface FollowerOptions<Item> {
  readonly log: CommitLog<Item>;
  readonly side: FollowerDatabase<Item>;
  readonly logger: Log;
  readonly now?: () => number;
}

/** Lag of a follower. */
export interface FollowerFigures {
  readonly generation: string;
  /** The newest applied commit. */
  readonly ts: number;
  /** The newest known commit of the log. */
  readonly newestTs: number;
  readonly lagCommits: number;
  /** Time since the last check that found all commits applied; `null` before the first one. */
  readonly lagMs: number | null;
  /** The newest last; ms since the epoch. */
  readonly errors: readonly { readonly at: number; readonly message: string }[];
}

const { now: systemNow } = Date;

export class Follower<Item> implements AsyncDisposable {
  readonly #options: FollowerOptions<Item>;
  readonly #now: () => number;
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #newestTs = 0;
  /** Time of the last check that found all commits applied. */
  #completeAt: number | null = null;
  #errors: FollowerFigures["errors"] = [];
  /** Consecutive failed attempts. */
  #failures = 0;
  #loggedError: string | null = null;

  constructor(options: FollowerOptions<Item>) {
    this.#options = options;
    this.#now = options.now ?? systemNow;
  }

  start(): void {
    this.#loop = this.#run();
  }

  get figures(): FollowerFigures {
    const { generation, ts } = this.#options.side.position();
    const newestTs = Math.max(ts, this.#newestTs);
    return {
      generation,
      ts,
      newestTs,
      lagCommits: newestTs - ts,
      lagMs: this.#completeAt === null ? null : Math.max(0, this.#now() - this.#completeAt),
      errors: this.#errors,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await this.#options.log[Symbol.asyncDispose]();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (await this.#step(signal) === "renewed") return;
        this.#failures = 0;
        this.#loggedError = null;
      } catch (error) {
        if (signal.aborted) return;
        this.#recordError(error);
        const { retryMsMin, retryMsMax } = replicationLimits;
        const pauseMs = Math.min(retryMsMax, retryMsMin * 2 ** Math.min(this.#failures++, 16));
        await wait(pauseMs, undefined, { signal }).catch(() => {});
      }
    }
  }

  async #step(signal: AbortSignal): Promise<"followed" | "renewed"> {
    const { log, side } = this.#options;
    try {
      const batch = await log.read(side.position(), { signal });
      this.#newestTs = batch.newestTs;
      if (batch.items.length > 0) await side.apply(batch.items);
      this.#recordProgress(batch);
      return "followed";
    } catch (error) {
      if (!(error instanceof LogGapError) || signal.aborted) throw error;
      this.#recordError(error);
      await side.renew(error.message, signal);
      return "renewed";
    }
  }

  #recordProgress({ newestTs, checkedAt }: LogBatch<Item>): void {
    if (this.#options.side.position().ts >= newestTs) this.#completeAt = checkedAt;
  }

  /** Logs an error unless the last one had the same message. */
  #recordError(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#errors = [...this.#errors, { at: this.#now(), message }].slice(-replicationLimits.errorsKept);
    if (this.#loggedError === message) return;
    this.#loggedError = message;
    const { log: { location }, logger } = this.#options;
    logger("warn", "Cannot follow the commit log", { from: location, reason: message });
  }
}
