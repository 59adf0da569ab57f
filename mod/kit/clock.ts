/** Time as the server's parts use it, so that tests hold it in their hands. */

/** Something that is to happen, once or again and again. */
export interface Timer {
  /** Does nothing once a timer that fires once has fired. */
  cancel(): void;
}

/** A clock with timers. */
export interface Clock {
  /** Milliseconds since a moment that the clock chooses. */
  now(): number;
  /** Calls `run` once, `ms` milliseconds from now. */
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

/** Milliseconds since the epoch; somebody may set it forward and back. */
export const systemClock: Clock = { now: () => Date.now(), ...timers };

/** Goes on evenly, whatever happens to the time of day: for how long something takes. */
export const steadyClock: Clock = { now: () => performance.now(), ...timers };
