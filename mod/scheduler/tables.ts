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
import { cronScheduleSchema } from "./cron_schedule.ts";

const instant = z.number();

/** Kinds of functions that can be scheduled. */
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
    /** Path of the function. */
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

/** Builders of admin functions, and of mutations with access to system tables. */
export const { adminQuery, adminMutation, systemMutation } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
