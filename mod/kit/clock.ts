/** Clocks and timers that tests can replace. */

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
