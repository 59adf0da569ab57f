/** Time as the scheduler uses it, so that tests hold it in their hands. */

import { schedulerLimits } from "../functions/limits.ts";

export interface SchedulerClock {
  /** Longest wait without a look at the clock, for one that may be set; none for one that only goes on. */
  readonly lookMs?: number;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `run` once, `ms` milliseconds from now, unless the returned function is called before. */
  after(ms: number, run: () => void): () => void;
}

export const systemClock: SchedulerClock = {
  lookMs: schedulerLimits.clockLookMs,
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
