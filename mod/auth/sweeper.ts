/** Deletes expired rows every now and then while the server runs. */
import type { Log } from "../kit/log.ts";
import { RecurringWork } from "../kit/recurring_work.ts";
import { authLimits } from "./limits.ts";
import { system, type SystemCalls } from "./system_calls.ts";

export interface SweeperOptions {
  readonly calls: SystemCalls;
  readonly now: () => number;
  readonly log: Log;
}

/** Begins the sweeps; `run` deletes what is expired now. */
export function createSweeper({ calls, now, log }: SweeperOptions): RecurringWork {
  return new RecurringWork({
    intervalMs: authLimits.sweepIntervalMs,
    // Each run of the function deletes a bounded number of rows, so that no mutation of the app waits for long behind one.
    async work(signal) {
      while (!signal.aborted && await calls.mutate(system.sweep, { now: now() }));
    },
    onError: (error) => log("warn", "Expired sessions and codes could not be deleted", { error }),
  });
}
