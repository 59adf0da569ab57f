/** Scheduled functions and cron jobs, as the server wires them. */
export type { CronSchedule } from "./cron_schedule.ts";
export type { Cron } from "./crons.ts";
export { cleanupActions, cleanupCron } from "./cleanup.ts";
export { SCHEDULED } from "./job_runner.ts";
export { Scheduler, type SchedulerOptions } from "./scheduler.ts";
export type { SchedulerPort } from "./system.ts";
export { waitingJobs } from "./waiting_jobs.ts";
export { serviceCron } from "./service_cron.ts";
