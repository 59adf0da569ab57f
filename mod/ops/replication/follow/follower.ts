/** Follows a log: reads what comes, applies it, and knows how far behind it is. */
import { setTimeout as wait } from "node:timers/promises";
import type { Log } from "../../../kit/log.ts";
import { replicationLimits } from "../../limits.ts";
import { type CommitLog, type LogBatch, LogGapError, type LogPosition } from "./commit_log.ts";

export interface FollowerDatabase<Item> {
  /** Where it stands. */
  readonly position: () => LogPosition;
  /**
   * Applies what follows. Throws a `LogGapError` when that does not fit; after any other error it is tried again, from
   * wherever the position is then.
   */
  readonly apply: (items: readonly Item[]) => Promise<void>;
  /** Starts again from a newer state. This follower ends when it resolves; it rejects when there is no newer state. */
  readonly renew: (reason: string, signal: AbortSignal) => Promise<void>;
}

export interface FollowerOptions<Item> {
  readonly log: CommitLog<Item>;
  readonly side: FollowerDatabase<Item>;
  readonly logger: Log;
  readonly now?: () => number;
}

/** How far behind a follower is. */
export interface FollowerFigures {
  readonly generation: string;
  /** The newest commit that is shown. */
  readonly ts: number;
  /** The newest that the log is known to have. */
  readonly newestTs: number;
  readonly lagCommits: number;
  /** Time since the last check that found all commits shown; `null` before the first one. */
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
  /** The last moment at which all that the log had was shown. */
  #completeAt: number | null = null;
  #errors: FollowerFigures["errors"] = [];
  /** Tries in a row that failed. */
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
      const part = await log.read(side.position(), { signal });
      this.#newestTs = part.newestTs;
      if (part.items.length > 0) await side.apply(part.items);
      this.#recordProgress(part);
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
    logger("warn", "Following", { from: location, reason: message });
  }
}
