/** Counts pending jobs by function of the app, for a deploy that might remove some. */
import type { SystemCalls } from "../functions/system_calls.ts";
import type { WaitingJobs } from "./isolate_functions/jobs.ts";
import { system } from "./system.ts";

export type { WaitingJobs };

/** Counts waiting jobs by function, up to `schedulerLimits.jobsCountedMax` of them. */
export function waitingJobs(calls: Pick<SystemCalls, "query">): Promise<WaitingJobs> {
  return calls.query(system.jobs.waiting, {});
}
