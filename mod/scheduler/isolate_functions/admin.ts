/** What administrators see and change of scheduled functions and crons, at `_admin/schedule:<name>`. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import { type Id, paginationOpts, type PaginationResult } from "../../functions/api/service.ts";
import type { CronSchedule } from "../cron_schedule.ts";
import {
  adminMutation,
  adminQuery,
  type JobKind,
  type JobState,
  type SchedulerDoc,
  type SchedulerMutationCtx,
} from "../tables.ts";
import { leftWaiting } from "./schedule.ts";

/** A scheduled function as administrators see it. */
export interface JobSummary {
  readonly jobId: Id<"_scheduled_functions">;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly kind: JobKind;
  readonly scheduledTime: number;
  readonly completedTime: number | null;
  readonly state: JobState;
}

/** Scheduled functions: those that wait or run with the next one first, or all with the newest first. */
export const jobs = adminQuery({
  args: {
    paginationOpts,
    state: z.enum(["pending", "inProgress", "success", "failed", "canceled"]).optional(),
    kind: z.enum(["mutation", "action"]).optional(),
  },
  handler: async (ctx, { paginationOpts, state, kind }): Promise<PaginationResult<JobSummary>> => {
    const rows = ctx.db.query("_scheduled_functions");
    if (state === undefined) {
      const all = kind === undefined
        ? rows.order("desc")
        : rows.order("desc").filter(({ functionKind }) => functionKind === kind);
      return summaries(await all.paginate({ ...paginationOpts, maximumRowsRead: ROWS_READ_MAX }));
    }
    const inState = rows.withIndex("by_due", (q) => {
      const range = q.eq("state.kind", state);
      return kind === undefined ? range : range.eq("functionKind", kind);
    });
    const ended = state !== "pending" && state !== "inProgress";
    return summaries(await inState.order(ended ? "desc" : "asc").paginate(paginationOpts));
  },
});

/** Rows looked at for one page when most are left out. */
const ROWS_READ_MAX = 4_000;

/** A cron as administrators see it. */
export interface CronSummary {
  readonly name: string;
  readonly schedule: CronSchedule;
  readonly function: string;
  readonly kind: JobKind;
  readonly args: Readonly<Record<string, unknown>>;
  /** Whether it is the service's own. */
  readonly ofService: boolean;
  /** `null` when it never runs again. */
  readonly nextRun: number | null;
  readonly lastRun: number | null;
  /** What became of the newest run; `null` when there was none, or it is forgotten. */
  readonly lastState: JobState | null;
}

/** All crons, by name. */
export const crons = adminQuery({
  args: {},
  handler: async (ctx): Promise<CronSummary[]> => {
    const rows = await ctx.db.query("_crons").withIndex("by_name").collect();
    return await Promise.all(rows.map(async (row) => ({
      name: row.name,
      schedule: row.schedule,
      function: row.function,
      kind: row.functionKind,
      args: row.args,
      ofService: row.name.startsWith("svc-"),
      nextRun: row.nextRun >= Number.MAX_SAFE_INTEGER ? null : row.nextRun,
      lastRun: row.lastRun ?? null,
      lastState: row.lastJob === undefined ? null : (await ctx.db.get(row.lastJob))?.state ?? null,
    })));
  },
});

/** Cancels a scheduled function that waits or runs; an action that runs goes on, its end is not noted. */
export const cancelJob = adminMutation({
  args: { jobId: z.string() },
  handler: async (ctx, { jobId }): Promise<null> => {
    const job = await existing(ctx, jobId);
    if (job.state.kind !== "pending" && job.state.kind !== "inProgress") throw ended(job);
    if (job.state.kind === "pending") leftWaiting(ctx, job);
    await ctx.db.patch(job._id, { state: { kind: "canceled" }, completedTime: Date.now() });
    return null;
  },
});

/** Lets a scheduled function that waits run now. */
export const runJobNow = adminMutation({
  args: { jobId: z.string() },
  handler: async (ctx, { jobId }): Promise<null> => {
    const job = await existing(ctx, jobId);
    if (job.state.kind !== "pending") throw ended(job);
    if (job.scheduledTime > Date.now()) await ctx.db.patch(job._id, { scheduledTime: Date.now() });
    return null;
  },
});

/** Runs a cron now; its next run stays when it is. Throws `cron_running` while a run has not ended. */
export const runCronNow = adminMutation({
  args: { name: z.string() },
  handler: async (ctx, { name }): Promise<{ jobId: Id<"_scheduled_functions"> }> => {
    const row = await ctx.db.query("_crons").withIndex("by_name", (q) => q.eq("name", name)).unique();
    if (row === null) throw new UserError("cron_not_found", "There is no cron with this name");
    const last = row.lastJob === undefined ? null : await ctx.db.get(row.lastJob);
    if (last?.state.kind === "pending" || last?.state.kind === "inProgress") {
      throw new UserError("cron_running", "A run of this cron has not ended");
    }
    if (last !== null) await ctx.db.delete(last._id);
    const now = Date.now();
    const lastJob = await ctx.db.insert("_scheduled_functions", {
      name: row.function,
      args: row.args,
      functionKind: row.functionKind,
      scheduledTime: now,
      state: { kind: "pending" },
    });
    await ctx.db.patch(row._id, { lastRun: now, lastJob });
    return { jobId: lastJob };
  },
});

async function existing(
  ctx: SchedulerMutationCtx,
  jobId: string,
): Promise<SchedulerDoc<"_scheduled_functions">> {
  const id = ctx.db.normalizeId("_scheduled_functions", jobId);
  const job = id === null ? null : await ctx.db.get(id);
  if (job === null) throw new UserError("job_not_found", "There is no scheduled function with this id");
  return job;
}

function ended({ state }: SchedulerDoc<"_scheduled_functions">): UserError {
  return new UserError("job_not_waiting", `The scheduled function does not wait: ${state.kind}`);
}

function summaries(
  { page, ...rest }: PaginationResult<SchedulerDoc<"_scheduled_functions">>,
): PaginationResult<JobSummary> {
  return {
    ...rest,
    page: page.map(({ _id, name, args, functionKind, scheduledTime, completedTime = null, state }) => ({
      jobId: _id,
      name,
      args,
      kind: functionKind,
      scheduledTime,
      completedTime,
      state,
    })),
  };
}
