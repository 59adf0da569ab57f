/** Runs on their way to the log process: bounded, in order, and counted where they had to be left out. */
import { logLimits } from "../limits.ts";
import type { RunRecord } from "./run_record.ts";

export interface RunQueueOptions {
  /** Hands over runs; resolves when they are taken, to `false` when they were lost. */
  readonly send: (runs: readonly RunRecord[]) => Promise<boolean>;
  /** Whether there is somebody to take them. */
  readonly open: () => boolean;
}

export class RunQueue {
  readonly #options: RunQueueOptions;
  #runs: RunRecord[] = [];
  /** Characters of each of them. */
  #sizes: number[] = [];
  #chars = 0;
  #dropped = 0;
  /** Exists while runs wait for the next turn. */
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** Set while runs are being handed over. */
  #sending: Promise<void> | null = null;
  #closed = false;

  constructor(options: RunQueueOptions) {
    this.#options = options;
  }

  /** Runs that were left out because there was no room for them, or lost on their way. */
  get dropped(): number {
    return this.#dropped;
  }

  get size(): number {
    return this.#runs.length;
  }

  push(run: RunRecord, chars: number): void {
    const { queuedRunsMax, queuedCharsMax } = logLimits;
    if (this.#runs.length >= queuedRunsMax || this.#chars + chars > queuedCharsMax || this.#closed) {
      this.#dropped++;
      return;
    }
    this.#runs.push(run);
    this.#sizes.push(chars);
    this.#chars += chars;
    this.#later();
  }

  /** Hands over all that is there now; resolves when it is taken, or cannot be. */
  async flush(): Promise<void> {
    await this.#sending;
    await this.#begin();
  }

  /** Hands over what is there, and takes nothing more. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.flush();
  }

  #later(): void {
    if (this.#timer !== null || this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#sending === null && this.#options.open()) void this.#begin();
      else this.#later();
    }, logLimits.flushMs);
  }

  #begin(): Promise<void> {
    return this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
      if (this.#runs.length > 0) this.#later();
    });
  }

  async #send(): Promise<void> {
    for (let left = this.#runs.length; left > 0 && this.#options.open();) {
      const batch = this.#runs.splice(0, Math.min(left, logLimits.batchRunsMax));
      for (const size of this.#sizes.splice(0, batch.length)) this.#chars -= size;
      left -= batch.length;
      if (!await this.#options.send(batch)) this.#dropped += batch.length;
    }
  }
}
