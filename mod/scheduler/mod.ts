/** Scheduled functions and crons: what the server wires up. */
export type { CronSchedule } from "./cron_schedule.ts";
export type { Cron } from "./crons.ts";
export { cleaningActions, cleaningCron } from "./cleaning.ts";
export { SCHEDULED } from "./job_runner.ts";
export { Scheduler, type SchedulerOptions } from "./scheduler.ts";
export type { SchedulerPort } from "./system.ts";
export { serviceCron } from "./service_cron.ts";
