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
