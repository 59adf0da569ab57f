/** Bounded queue of runs for the log worker; counts dropped ones. */
import { logLimits } from "../limits.ts";
import type { RunRecord } from "./run_record.ts";

export interface RunQueueOptions {
  /** Stores runs; resolves with `false` if they were lost. */
  readonly send: (runs: readonly RunRecord[]) => Promise<boolean>;
  /** Whether a worker is running. */
  readonly isOpen: () => boolean;
}

export class RunQueue {
  readonly #options: RunQueueOptions;
  /** Oldest first; the last one is not complete. */
  readonly #batches: { readonly runs: RunRecord[]; chars: number }[] = [];
  /** Totals of all batches. */
  #size = 0;
  #chars = 0;
  #dropped = 0;
  /** Set while runs wait for the next send. */
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** Set while runs are being sent. */
  #sending: Promise<void> | null = null;
  #closed = false;

  constructor(options: RunQueueOptions) {
    this.#options = options;
  }

  /** Runs dropped because the queue was full or the worker was lost. */
  get dropped(): number {
    return this.#dropped;
  }

  get size(): number {
    return this.#size;
  }

  push(run: RunRecord, chars: number): void {
    const { queuedRunsMax, queuedCharsMax, batchRunsMax, batchCharsMax } = logLimits;
    if (this.#size >= queuedRunsMax || this.#chars + chars > queuedCharsMax || this.#closed) {
      this.#dropped++;
      return;
    }
    let batch = this.#batches.at(-1);
    if (
      batch === undefined || batch.runs.length >= batchRunsMax ||
      batch.chars + chars > batchCharsMax
    ) {
      this.#batches.push(batch = { runs: [], chars: 0 });
    }
    batch.runs.push(run);
    batch.chars += chars;
    this.#size++;
    this.#chars += chars;
    if (this.#timer === null) this.#schedule();
  }

  /** Sends all queued runs. Resolves when they are stored or cannot be, at the latest after `msMax`. */
  async flush(msMax = Infinity): Promise<void> {
    const all = (async () => {
      await this.#sending;
      await this.#begin();
    })();
    if (msMax === Infinity) return await all;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, msMax);
    await Promise.race([all, late]);
    clearTimeout(timer);
  }

  /** Sends queued runs for a limited time, and accepts no more. */
  async close(ms: number = logLimits.closeMs): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const late = setTimeout(() => {
      this.#dropped += this.#size;
      this.#batches.length = this.#size = this.#chars = 0;
    }, ms);
    await this.flush();
    clearTimeout(late);
  }

  #schedule(): void {
    if (this.#timer !== null || this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#sending === null && this.#options.isOpen()) void this.#begin();
      else this.#schedule();
    }, logLimits.flushMs);
  }

  #begin(): Promise<void> {
    return this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
      if (this.#size > 0) this.#schedule();
    });
  }

  async #send(): Promise<void> {
    for (let left = this.#batches.length; left > 0 && this.#options.isOpen(); left--) {
      const next = this.#batches.shift();
      if (next === undefined) return;
      this.#size -= next.runs.length;
      this.#chars -= next.chars;
      if (!await this.#options.send(next.runs)) this.#dropped += next.runs.length;
    }
  }
}
