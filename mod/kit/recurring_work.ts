/** Work that repeats at an interval, one run at a time. */

export interface RecurringWorkOptions {
  readonly intervalMs: number;
  /** One run. It must check the signal between its steps. */
  readonly work: (signal: AbortSignal) => Promise<void>;
  /** Called with the error of a run, unless the work is closing. */
  readonly onError: (error: unknown) => void;
}

export class RecurringWork implements AsyncDisposable {
  readonly #options: RecurringWorkOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #closing = new AbortController();
  /** The run in progress. */
  #running: Promise<void> | null = null;

  /** The first run starts after one interval, or with {@linkcode run}. */
  constructor(options: RecurringWorkOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.run(), options.intervalMs);
    Deno.unrefTimer(this.#timer);
  }

  /** Runs now, or waits for the run in progress. Never rejects. */
  run(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve();
    return this.#running ??= this.#run().finally(() => this.#running = null);
  }

  /** Waits for the run in progress. No run starts afterwards. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#timer);
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    try {
      await this.#options.work(signal);
    } catch (error) {
      if (!signal.aborted) this.#options.onError(error);
    }
  }
}
