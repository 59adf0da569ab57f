/** Tables of the scheduler, and function builders typed with them. */
import { z } from "zod";
import {
  createFunctions,
  createSystemFunctions,
  type DataModelOf,
  defineTable,
  type DocumentOf,
  id,
  type MutationCtx,
  type QueryCtx,
  type Schema,
} from "../functions/api/service.ts";
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

/** Returns the next run after `now`. Missed runs are skipped; intervals stay aligned to their start. */
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

const instant = z.number();

export const functionKindSchema = z.enum(["mutation", "action"]);

/**
 * States of a job:
 *
 *     pending --mutation's own commit--> success | failed
 *     pending --begin--> inProgress --the action has ended--> success | failed
 *     pending | inProgress --cancel--> canceled
 */
const stateSchema = z.union([
  z.object({ kind: z.literal("pending") }),
  z.object({ kind: z.literal("inProgress") }),
  z.object({ kind: z.literal("success") }),
  z.object({ kind: z.literal("failed"), error: z.string() }),
  z.object({ kind: z.literal("canceled") }),
]);

export const tables = {
  /** Jobs: pending, running and finished scheduled functions. Readable by app code. */
  _scheduled_functions: defineTable({
    name: z.string(),
    args: z.record(z.string(), z.unknown()),
    scheduledTime: instant,
    completedTime: instant.optional(),
    state: stateSchema,
    /** Kind at the time of scheduling; later edits may have changed the function's kind. */
    functionKind: functionKindSchema,
    /** For jobs scheduled by jobs: the chain, and whether it was over the limit. */
    chain: z.strictObject({ root: z.string(), generation: z.number(), putOff: z.literal(true).optional() })
      .optional(),
    /** ID of the job by which an administrator retried this one. */
    retriedBy: z.string().optional(),
  }).index("by_due", ["state.kind", "functionKind", "scheduledTime"]).index("by_end", ["completedTime"]),

  /** Cron jobs of the app and of the service. */
  _crons: defineTable({
    /** Unique; the service's start with `svc-`. */
    name: z.string(),
    schedule: cronScheduleSchema,
    function: z.string(),
    functionKind: functionKindSchema,
    args: z.record(z.string(), z.unknown()),
    nextRun: instant,
    /** Due time and job of the newest run. */
    lastRun: instant.optional(),
    lastJob: id("_scheduled_functions").optional(),
  }).index("by_name", ["name"]),
};

export type SchedulerModel = DataModelOf<Schema<typeof tables>>;
export type SchedulerDoc<Table extends keyof SchedulerModel & string> = DocumentOf<SchedulerModel, Table>;
export type SchedulerMutationCtx = MutationCtx<SchedulerModel>;
export type JobState = z.output<typeof stateSchema>;
export type JobKind = z.output<typeof functionKindSchema>;

export type SchedulerQueryCtx = QueryCtx<SchedulerModel>;

export const { internalQuery, internalMutation } = createFunctions(
  { tables } satisfies Schema<typeof tables>,
);

export const { adminQuery, adminMutation, systemMutation, systemQuery } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
