/** The client's clock, replaceable in tests. */

/** A clock with timers. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `callback` once after `delayMs`. Returns the argument for `clearTimeout`. */
  setTimeout(callback: () => void, delayMs: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** The clock of the platform. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimeout: (timer) => clearTimeout(timer as number),
};

/** A timer that can be set repeatedly: setting it replaces the previous one. */
export class Alarm {
  readonly #clock: Clock;
  #timer: unknown = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isSet(): boolean {
    return this.#timer !== null;
  }

  set(delayMs: number, callback: () => void): void {
    this.clear();
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = null;
      callback();
    }, delayMs);
  }

  clear(): void {
    if (this.#timer === null) return;
    this.#clock.clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** Runs requests until they succeed, fail, time out or are aborted. Afterwards, those in flight are aborted. */
export async function within<Result>(
  { clock, timeoutMs, over = new AbortController() }: {
    readonly clock: Clock;
    readonly timeoutMs: number;
    readonly over?: AbortController;
  },
  request: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const alarm = new Alarm(clock);
  try {
    return await new Promise<Result>((resolve, reject) => {
      const fail = () => reject(new Error("No response in time"));
      over.signal.addEventListener("abort", fail);
      alarm.set(timeoutMs, fail);
      request(over.signal).then(resolve, reject);
    });
  } finally {
    alarm.clear();
    over.abort();
  }
}
