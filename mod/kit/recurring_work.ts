/** Work that is done every now and then while the server runs, one run at a time. */

export interface RecurringWorkOptions {
  readonly intervalMs: number;
  /** One run. It looks at the signal between its steps and stops when the work is being closed. */
  readonly work: (signal: AbortSignal) => Promise<void>;
  /** Called with what a run threw, unless the work is being closed. */
  readonly onError: (error: unknown) => void;
}

export class RecurringWork implements AsyncDisposable {
  readonly #options: RecurringWorkOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #closing = new AbortController();
  /** The run under way; a new one begins only after it. */
  #running: Promise<void> | null = null;

  /** Nothing runs before the first interval is over; {@linkcode run} does not wait for it. */
  constructor(options: RecurringWorkOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.run(), options.intervalMs);
    Deno.unrefTimer(this.#timer);
  }

  /** Runs now, or waits for the run under way. Never rejects: what failed is tried again at the next interval. */
  run(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve();
    return this.#running ??= this.#run().finally(() => this.#running = null);
  }

  /** Waits for the run under way; none begins afterwards. */
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
