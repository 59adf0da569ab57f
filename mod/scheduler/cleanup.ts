/** Hourly deletion of old job results. */
import { z } from "zod";
import { internalMainAction, type MainAction } from "../functions/main_actions.ts";
import { schedulerLimits } from "../functions/limits.ts";
import type { Cron } from "./crons.ts";
import { serviceCron } from "./service_cron.ts";
import { SystemCalls } from "../functions/system_calls.ts";
import { type SchedulerPort, system } from "./system.ts";

const CLEAN_PATH = "_system/scheduler:cleanAll";

export const cleanupCron: Cron = serviceCron(
  "svc-clean-scheduled",
  { kind: "expression", expression: "17 * * * *" },
  { path: CLEAN_PATH, kind: "action" },
);

/** Actions of {@linkcode cleanupCron} by path. Each batch is a separate mutation, so that other calls do not wait long. */
export function cleanupActions(
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
