/** Scheduled functions and cron jobs, as the server wires them. */
export type { CronSchedule } from "./tables.ts";
export { cleanupActions, cleanupCron, type Cron, serviceCron } from "./crons.ts";
export { SCHEDULED } from "./job_runner.ts";
export { Scheduler, type SchedulerOptions } from "./scheduler.ts";
export { recentFailures, type SchedulerPort, waitingJobs } from "./system.ts";
