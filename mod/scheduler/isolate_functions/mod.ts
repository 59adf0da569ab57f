/** The scheduler's modules that isolates load. */
import type { SystemModule } from "../../functions/system_module.ts";
import { declare, start } from "./crons.ts";
import { cancelJob, crons, jobs, orphanedJobs, retryJob, runCronNow, runJobNow } from "./admin.ts";
import { jobFunctions } from "./jobs.ts";
import { cancel, schedule } from "./schedule.ts";
import { tables } from "../tables.ts";

/** Called by the server only, at `_system/crons:<name>`. */
export const cronFunctions = { declare, start };

/** Called by administrators, at `_admin/schedule:<name>`. */
export const scheduleFunctions = { cancelJob, crons, jobs, orphanedJobs, retryJob, runCronNow, runJobNow };

export const schedulerModules: readonly SystemModule[] = [
  { path: "_system/scheduler", tables, functions: jobFunctions },
  { path: "_system/crons", tables: {}, functions: cronFunctions },
  { path: "_ctx/scheduler", tables: {}, functions: { cancel, schedule } },
  { path: "_admin/schedule", tables: {}, functions: scheduleFunctions },
];
