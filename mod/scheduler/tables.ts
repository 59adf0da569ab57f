/** The tables of the scheduler, and the function builders that know them. */
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

/** Instants are milliseconds since the epoch. */
const instant = z.number();

/** What can be scheduled. */
export const functionKindSchema = z.enum(["mutation", "action"]);

/**
 * A job's life:
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
  /** Jobs: functions that are to run, that run, and that have run. App code reads them. */
  _scheduled_functions: defineTable({
    /** Path of the function. */
    name: z.string(),
    args: z.record(z.string(), z.unknown()),
    scheduledTime: instant,
    completedTime: instant.optional(),
    state: stateSchema,
    /** As it was when the job was made; a later edit may have made another kind of it. */
    functionKind: functionKindSchema,
    /** Of one that a scheduled function scheduled: where it comes from, and whether too many of its kin waited already. */
    chain: z.strictObject({ root: z.string(), generation: z.number(), putOff: z.literal(true).optional() })
      .optional(),
  }).index("by_due", ["state.kind", "functionKind", "scheduledTime"]).index("by_end", ["completedTime"]),

  /** Crons of the app and of the service. */
  _crons: defineTable({
    /** Unique; the service's begin with `svc-`. */
    name: z.string(),
    schedule: cronScheduleSchema,
    function: z.string(),
    functionKind: functionKindSchema,
    args: z.record(z.string(), z.unknown()),
    nextRun: instant,
    /** When the newest run was due, and its job. */
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

/** The builders of what administrators call, and of mutations that see more than the app's do. */
export const { adminQuery, adminMutation, systemMutation } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
