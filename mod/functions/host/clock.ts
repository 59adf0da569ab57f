/** Time as the host uses it, so that tests hold it in their hands. */

/** A timer that has not fired yet. */
export interface Timer {
  /** Does nothing once the timer has fired. */
  cancel(): void;
}

/** A clock that never goes back. */
export interface HostClock {
  /** Milliseconds since some fixed moment. */
  now(): number;
  /** Calls `run` once, `ms` milliseconds from now. */
  after(ms: number, run: () => void): Timer;
}

/** The clock of the machine. */
export const machineClock: HostClock = {
  now: () => performance.now(),
  after(ms, run) {
    const id = setTimeout(run, ms);
    return { cancel: () => clearTimeout(id) };
  },
};
