/** Deletes expired rows periodically. */
import type { Log } from "../kit/log.ts";
import { RecurringWork } from "../kit/clock.ts";
import { authLimits } from "./limits.ts";
import { system, type SystemCalls } from "./system_calls.ts";

export interface SweeperOptions {
  readonly calls: SystemCalls;
  readonly now: () => number;
  readonly log: Log;
}

/** Starts the sweeps; `run` deletes expired rows now. */
export function createSweeper({ calls, now, log }: SweeperOptions): RecurringWork {
  return new RecurringWork({
    intervalMs: authLimits.sweepIntervalMs,
    // Each call deletes a bounded number of rows, so that mutations of the app do not wait long.
    async work(signal) {
      while (!signal.aborted && await calls.mutate(system.sweep, { now: now() }));
    },
    onError: (error) => log("warn", "Cannot delete expired sessions and codes", { error }),
  });
}
