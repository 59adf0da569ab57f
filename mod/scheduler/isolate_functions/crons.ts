/** Transactions on cron job rows: declaring them, and starting due runs. */
import { z } from "zod";
import { isSystemPath } from "../../functions/system_module.ts";
import {
  cronScheduleSchema,
  functionKindSchema,
  internalMutation,
  sameSchedule,
  type SchedulerDoc,
  type SchedulerMutationCtx,
} from "../tables.ts";

const declaredSchema = z.object({
  name: z.string(),
  schedule: cronScheduleSchema,
  function: z.string(),
  functionKind: functionKindSchema,
  args: z.record(z.string(), z.unknown()),
  /** First run if the cron job is new or its schedule has changed. */
  firstRun: z.number(),
});

export type DeclaredCron = z.output<typeof declaredSchema>;

export interface CronTime {
  readonly name: string;
  readonly nextRun: number;
}

/** Name prefix that distinguishes the service's cron jobs from the app's. */
const serviceNamePrefix = "svc-";

/** Replaces cron jobs. Unchanged schedules keep their next run; removed ones are deleted with their pending run. */
export const declare = internalMutation({
  args: { of: z.enum(["app", "service"]), crons: z.array(declaredSchema) },
  handler: async (ctx, { of, crons }): Promise<CronTime[]> => {
    for (const { name, function: path } of crons) {
      const ofService = name.startsWith(serviceNamePrefix);
      if (ofService !== (of === "service") || (isSystemPath(path) && !ofService)) {
        throw new TypeError(`Invalid name "${name}" for a cron job of the ${of}`);
      }
    }
    const declared = new Map(crons.map((cron) => [cron.name, cron]));
    const times: CronTime[] = [];
    for (const row of await ctx.db.query("_crons").collect()) {
      if (row.name.startsWith(serviceNamePrefix) !== (of === "service")) continue;
      const cron = declared.get(row.name);
      declared.delete(row.name);
      if (cron === undefined) await remove(ctx, row);
      else times.push(await change(ctx, row, cron));
    }
    for (const { firstRun, ...cron } of declared.values()) {
      await ctx.db.insert("_crons", { ...cron, nextRun: firstRun });
      times.push({ name: cron.name, nextRun: firstRun });
    }
    return times;
  },
});

async function change(
  ctx: SchedulerMutationCtx,
  row: SchedulerDoc<"_crons">,
  { firstRun, ...cron }: DeclaredCron,
): Promise<CronTime> {
  const nextRun = sameSchedule(row.schedule, cron.schedule) ? row.nextRun : firstRun;
  await ctx.db.patch(row._id, { ...cron, nextRun });
  return { name: row.name, nextRun };
}

async function remove(ctx: SchedulerMutationCtx, { _id, lastJob }: SchedulerDoc<"_crons">): Promise<void> {
  const job = lastJob === undefined ? null : await ctx.db.get(lastJob);
  if (job?.state.kind === "pending") {
    await ctx.db.patch(job._id, { state: { kind: "canceled" }, completedTime: Date.now() });
  }
  await ctx.db.delete(_id);
}

/** Starts the run due at `dueAt`, or skips it: a cron job never overlaps itself. Returns the next run; `null` if removed. */
export const start = internalMutation({
  args: { name: z.string(), dueAt: z.number(), nextRun: z.number() },
  handler: async (ctx, { name, dueAt, nextRun }): Promise<number | null> => {
    const row = await ctx.db.query("_crons").withIndex("by_name", (q) => q.eq("name", name)).unique();
    if (row === null) return null;
    if (row.nextRun !== dueAt) return row.nextRun;
    const last = row.lastJob === undefined ? null : await ctx.db.get(row.lastJob);
    if (last?.state.kind === "pending" || last?.state.kind === "inProgress") {
      ctx.log.warn("Skipped a cron run because the previous one has not ended", { cron: name });
      await ctx.db.patch(row._id, { nextRun });
      return nextRun;
    }
    if (last !== null) await ctx.db.delete(last._id);
    const lastJob = await ctx.db.insert("_scheduled_functions", {
      name: row.function,
      args: row.args,
      functionKind: row.functionKind,
      scheduledTime: dueAt,
      state: { kind: "pending" },
    });
    await ctx.db.patch(row._id, { nextRun, lastRun: dueAt, lastJob });
    return nextRun;
  },
});
