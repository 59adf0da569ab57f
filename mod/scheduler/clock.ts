/** Time as the scheduler uses it, so that tests hold it in their hands. */

export interface SchedulerClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `run` once, `ms` milliseconds from now, unless the returned function is called before. */
  after(ms: number, run: () => void): () => void;
}

export const systemClock: SchedulerClock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
