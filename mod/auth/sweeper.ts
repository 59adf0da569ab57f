/** Deletes expired rows every now and then while the server runs. */
import type { Log } from "../kit/log.ts";
import { authLimits } from "../limits.ts";
import { system, type SystemCalls } from "./system_calls.ts";

export interface SweeperOptions {
  readonly calls: SystemCalls;
  readonly now: () => number;
  readonly log: Log;
}

export class Sweeper implements AsyncDisposable {
  readonly #options: SweeperOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  /** The run under way; a new one begins only after it. */
  #running: Promise<void> | null = null;
  #closed = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.run(), authLimits.sweepIntervalMs);
    Deno.unrefTimer(this.#timer);
  }

  /** Deletes what is expired now. Never rejects: what failed is tried again at the next interval. */
  run(): Promise<void> {
    return this.#running ??= this.#sweep().finally(() => this.#running = null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  async #sweep(): Promise<void> {
    const { calls, now, log } = this.#options;
    try {
      // Each run deletes a bounded number of rows, so that no mutation of the app waits for long behind one.
      while (!this.#closed && await calls.mutate(system.sweep, { now: now() }));
    } catch (error) {
      if (!this.#closed) log("warn", "Expired sessions and codes could not be deleted", { error });
    }
  }
}
