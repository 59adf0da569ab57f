/** Clocks, yields to the event loop, and work repeated on a timer. */
import { setImmediate } from "node:timers";

/** Resolves after the event loop has run other pending work. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Longest time without a yield. */
const SLICE_MS = 8;

/** Splits long work on the main thread, so that the event loop runs in between. */
export class TimeSlicer {
  #since = performance.now();

  /** Yields to the event loop if the time slice is used up. Call it between two pieces of work. */
  async yieldIfDue(): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return;
    await yieldToEventLoop();
    this.#since = performance.now();
  }
}

export interface RecurringWorkOptions {
  readonly intervalMs: number;
  /** One run. It must check the signal between its steps. */
  readonly work: (signal: AbortSignal) => Promise<void>;
  /** Called with the error of a run, unless the work is closing. */
  readonly onError: (error: unknown) => void;
}

/** Work that repeats at an interval, one run at a time. */
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

export interface Timer {
  /** Has no effect after a one-shot timer has fired. */
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since an arbitrary moment. */
  now(): number;
  /** Calls `run` once, after `ms` milliseconds. */
  after(ms: number, run: () => void): Timer;
  /** Calls `run` every `ms` milliseconds. */
  every(ms: number, run: () => void): Timer;
}

const timers: Pick<Clock, "after" | "every"> = {
  after(ms, run) {
    const id = setTimeout(run, ms);
    return { cancel: () => clearTimeout(id) };
  },
  every(ms, run) {
    const id = setInterval(run, ms);
    return { cancel: () => clearInterval(id) };
  },
};

/** Wall clock, in milliseconds since the epoch; it may jump. */
export const systemClock: Clock = { now: () => Date.now(), ...timers };

/** Monotonic clock, for durations. */
export const steadyClock: Clock = { now: () => performance.now(), ...timers };

/** Resolves after `ms` milliseconds, or when the signal is aborted. */
export async function pause(clock: Pick<Clock, "after">, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = clock.after(ms, resolve);
  const aborted = () => resolve();
  signal?.addEventListener("abort", aborted, { once: true });
  await promise;
  timer.cancel();
  signal?.removeEventListener("abort", aborted);
}
