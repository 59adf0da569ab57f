/** Crons of the service itself, such as `svc-backup`. */
import type { JobKind } from "./tables.ts";
import type { Cron } from "./crons.ts";
import type { CronSchedule } from "./cron_schedule.ts";

/** What a cron of the service runs. */
export interface ServiceTask {
  /** Path of a function of the service in the isolates, or of an internal action of main (`main_actions.ts`). */
  readonly path: `_${string}`;
  readonly kind: JobKind;
  readonly args?: Record<string, unknown>;
}

/**
 * A cron of the service, for `Scheduler`. It is a job like those of the app: a mutation runs exactly once, an action at
 * most once; a run missed while the server was down is made up for once.
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
