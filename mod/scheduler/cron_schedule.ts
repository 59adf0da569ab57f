/** Schedules of cron jobs: an interval, or a cron expression in UTC. */
import { z } from "zod";
import { nextCronTime } from "../kit/cron_expression.ts";

export const cronScheduleSchema = z.union([
  z.strictObject({ kind: z.literal("interval"), everyMs: z.number() }),
  z.strictObject({ kind: z.literal("expression"), expression: z.string() }),
]);

export type CronSchedule = z.output<typeof cronScheduleSchema>;

/** Returns the first run of a new cron job; intervals start immediately. `null` if there is none. */
export function firstRun(schedule: CronSchedule, now: number): number | null {
  return schedule.kind === "interval" ? now : nextCronTime(schedule.expression, now);
}

/**
 * Returns the run after the one due at `dueAt`, later than `now`. Missed runs in between are skipped. Intervals stay aligned
 * to their start.
 */
export function nextRun(
  schedule: CronSchedule,
  { dueAt, now }: { readonly dueAt: number; readonly now: number },
): number | null {
  switch (schedule.kind) {
    case "interval": {
      const beats = Math.max(1, Math.floor((now - dueAt) / schedule.everyMs) + 1);
      return dueAt + beats * schedule.everyMs;
    }
    case "expression":
      return nextCronTime(schedule.expression, Math.max(now, dueAt));
    default:
      return schedule satisfies never;
  }
}

export function sameSchedule(a: CronSchedule, b: CronSchedule): boolean {
  if (a.kind === "interval") return b.kind === "interval" && a.everyMs === b.everyMs;
  return b.kind === "expression" && a.expression === b.expression;
}
