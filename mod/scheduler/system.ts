/** References to the scheduler's system functions, and the port through which they are called. */
import type { FunctionCall } from "../functions/host_port.ts";
import type { Outcome } from "../functions/outcome.ts";
import type { CallPort, SystemCalls } from "../functions/system_calls.ts";
import { createApi } from "../protocol/api_reference.ts";
import type { jobFunctions, RecentFailures, WaitingJobs } from "./isolate_functions/jobs.ts";
import type { cronFunctions } from "./isolate_functions/mod.ts";

export interface SchedulerPort extends CallPort {
  /** Runs an action of the app, the service or the main process. */
  act(call: FunctionCall): Promise<Outcome>;
}

const references = createApi<
  { "_system/scheduler": typeof jobFunctions; "_system/crons": typeof cronFunctions }
>().internal._system;

export const system = { jobs: references.scheduler, crons: references.crons };

export type { WaitingJobs };

/** Counts waiting jobs by function, up to `schedulerLimits.jobsCountedMax` of them. */
export function waitingJobs(calls: Pick<SystemCalls, "query">): Promise<WaitingJobs> {
  return calls.query(system.jobs.waiting, {});
}

/** Returns failures of jobs and cron jobs since a time, up to `schedulerLimits.failuresReadMax` of each kind. */
export function recentFailures(
  calls: Pick<SystemCalls, "queryInWriter">,
  since: number,
): Promise<RecentFailures> {
  return calls.queryInWriter(system.jobs.failures, { since });
}
