/** Deletes what became of scheduled functions when it is old. */
import { z } from "zod";
import { internalMainAction, type MainAction } from "../functions/main_actions.ts";
import { schedulerLimits } from "../functions/limits.ts";
import type { Cron } from "./crons.ts";
import { serviceCron } from "./service_cron.ts";
import { SystemCalls } from "../functions/system_calls.ts";
import { type SchedulerPort, system } from "./system.ts";

const CLEAN_PATH = "_system/scheduler:cleanAll";

/** Runs once an hour. */
export const cleaningCron: Cron = serviceCron(
  "svc-clean-scheduled",
  { kind: "expression", expression: "17 * * * *" },
  { path: CLEAN_PATH, kind: "action" },
);

/** What {@linkcode cleaningCron} runs, by path. Each step is a mutation of its own, so that no call waits long behind one. */
export function cleaningActions(
  { port, now = Date.now }: { readonly port: SchedulerPort; readonly now?: () => number },
): ReadonlyMap<string, MainAction> {
  const calls = new SystemCalls(port);
  return new Map([[
    CLEAN_PATH,
    internalMainAction(z.strictObject({}), async () => {
      const before = now() - schedulerLimits.resultKeptMs;
      while (await calls.mutate(system.jobs.clean, { before }));
    }),
  ]]);
}
