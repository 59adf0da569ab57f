/** Cron jobs of the service, such as `svc-backup`. */
import type { JobKind } from "./tables.ts";
import type { Cron } from "./crons.ts";
import type { CronSchedule } from "./cron_schedule.ts";

/** Function run by a service cron job. */
export interface ServiceTask {
  /** Path of a system function in the isolates, or of an internal action of the main process (`main_actions.ts`). */
  readonly path: `_${string}`;
  readonly kind: JobKind;
  readonly args?: Record<string, unknown>;
}

/**
 * Creates a cron job of the service for `Scheduler`. It runs like the app's cron jobs: a mutation exactly once, an action at
 * most once, and one run makes up for runs missed while the server was down.
 *
 * @example
 * ```ts
 * await scheduler.setServiceCron(
 *   serviceCron("svc-backup", { kind: "expression", expression: "0 3 * * *" }, {
 *     path: "_system/backup:run",
 *     kind: "action",
 *   }),
 * );
 * ```
 */
export function serviceCron(name: `svc-${string}`, schedule: CronSchedule, task: ServiceTask): Cron {
  return { name, schedule, function: task.path, functionKind: task.kind, args: task.args ?? {} };
}
