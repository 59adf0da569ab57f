/** Deletes expired rows and anonymous users without a session periodically. */
import type { Log } from "../kit/log.ts";
import { RecurringWork } from "../kit/clock.ts";
import type { AccountPolicy } from "./accounts.ts";
import { deleteUser } from "./admin/user_actions.ts";
import { authLimits } from "./limits.ts";
import { system, type SystemCalls } from "./system_calls.ts";

export interface SweeperOptions {
  readonly calls: SystemCalls;
  readonly policy: Pick<AccountPolicy, "anonymousUserMs">;
  readonly now: () => number;
  readonly log: Log;
}

/** Starts the sweeps; `run` deletes expired rows now. */
export function createSweeper({ calls, policy, now, log }: SweeperOptions): RecurringWork {
  return new RecurringWork({
    intervalMs: authLimits.sweepIntervalMs,
    // Each call deletes a bounded number of rows, so that mutations of the app do not wait long.
    async work(signal) {
      while (!signal.aborted && await calls.mutate(system.sweep, { now: now() }));
      let more = true;
      while (!signal.aborted && more) {
        const due = { now: now(), keepMs: policy.anonymousUserMs };
        const swept = await calls.mutate(system.sweepAnonymous, due);
        for (const userId of swept.leaving) {
          if (signal.aborted) return;
          await deleteUser(calls, { userId, anonymousOnly: true }).catch((error) =>
            log("warn", "Cannot delete an anonymous user", { userId, error })
          );
        }
        ({ more } = swept);
      }
    },
    onError: (error) => log("warn", "Cannot delete expired sessions and codes", { error }),
  });
}
