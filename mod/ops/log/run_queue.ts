/** Bounded queue of runs for the log process; counts dropped ones. */
import { logLimits } from "../limits.ts";
import { type RunPack, RunPacker } from "./packs/run_pack.ts";
import type { RunRecord } from "./run_record.ts";

export interface RunQueueOptions {
  /** Sends runs; resolves with `false` if they were lost. */
  readonly send: (runs: RunPack) => Promise<boolean>;
  /** Whether a process is running. */
  readonly open: () => boolean;
}

export class RunQueue {
  readonly #options: RunQueueOptions;
  readonly #packer = new RunPacker();
  /** Characters in the current batch. */
  #packing = 0;
  /** Oldest first, each with its number of characters. */
  readonly #packs: { readonly pack: RunPack; readonly chars: number }[] = [];
  /** Totals of all queued runs. */
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

  /** Runs dropped because the queue was full or the process was lost. */
  get dropped(): number {
    return this.#dropped;
  }

  get size(): number {
    return this.#size;
  }

  push(run: RunRecord, chars: number): void {
    const { queuedRunsMax, queuedCharsMax, batchRunsMax } = logLimits;
    if (this.#size >= queuedRunsMax || this.#chars + chars > queuedCharsMax || this.#closed) {
      this.#dropped++;
      return;
    }
    this.#packer.add(run);
    this.#size++;
    this.#chars += chars;
    this.#packing += chars;
    if (this.#packer.count >= batchRunsMax) this.#pack();
    if (this.#timer === null) this.#later();
  }

  /** Sends all queued runs; resolves when they are sent or cannot be. */
  async flush(): Promise<void> {
    await this.#sending;
    await this.#begin();
  }

  /** Sends all queued runs and accepts no more. */
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
      if (this.#size > 0) this.#later();
    });
  }

  async #send(): Promise<void> {
    if (!this.#options.open()) return;
    this.#pack();
    for (let left = this.#packs.length; left > 0 && this.#options.open(); left--) {
      const next = this.#packs.shift();
      if (next === undefined) return;
      this.#size -= next.pack.count;
      this.#chars -= next.chars;
      if (!await this.#options.send(next.pack)) this.#dropped += next.pack.count;
    }
  }

  #pack(): void {
    if (this.#packer.count === 0) return;
    this.#packs.push({ pack: this.#packer.take(), chars: this.#packing });
    this.#packing = 0;
  }
}
