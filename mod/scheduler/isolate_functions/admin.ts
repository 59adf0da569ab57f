/** Administrators' functions on scheduled functions and cron jobs, at `_admin/schedule:<name>`. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import {
  type Id,
  type Inspector,
  paginationOpts,
  type PaginationResult,
} from "../../functions/api/service.ts";
import {
  adminMutation,
  adminQuery,
  type CronSchedule,
  type JobKind,
  type JobState,
  type SchedulerDoc,
  type SchedulerMutationCtx,
} from "../tables.ts";
import { type WaitingJobs, waitingJobs } from "./jobs.ts";
import { onNotPending } from "./schedule.ts";

/** A scheduled function, as administrators see it. */
export interface JobSummary {
  readonly jobId: Id<"_scheduled_functions">;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly kind: JobKind;
  readonly scheduledTime: number;
  readonly completedTime: number | null;
  readonly state: JobState;
  /** Whether the live version lacks its function. */
  readonly orphaned: boolean;
  /** Whether an administrator has retried it. */
  readonly retried: boolean;
}

/** Lists scheduled functions: pending or running ones by due time, or all with the newest first. */
export const jobs = adminQuery({
  args: {
    paginationOpts,
    state: z.enum(["pending", "inProgress", "success", "failed", "canceled"]).optional(),
    kind: z.enum(["mutation", "action"]).optional(),
    /** Selects jobs whose function the live version lacks. */
    orphaned: z.literal(true).optional(),
  },
  handler: async (ctx, { paginationOpts, state, kind, orphaned }): Promise<PaginationResult<JobSummary>> => {
    const { inspector } = ctx;
    const rows = ctx.db.query("_scheduled_functions");
    let query;
    if (state === undefined) {
      query = rows.order("desc");
      if (kind !== undefined) query = query.filter(({ functionKind }) => functionKind === kind);
    } else {
      const ended = state !== "pending" && state !== "inProgress";
      query = rows.withIndex("by_due", (q) => {
        const range = q.eq("state.kind", state);
        return kind === undefined ? range : range.eq("functionKind", kind);
      }).order(ended ? "desc" : "asc");
    }
    if (orphaned === true) query = query.filter(({ name }) => isOrphaned(inspector, name));
    const { page, ...rest } = await query.paginate({ ...paginationOpts, maximumRowsRead: ROWS_READ_MAX });
    return { ...rest, page: page.map((job) => summaryOf(job, inspector)) };
  },
});

/** Counts the pending jobs of functions that the live version lacks, up to a limit: poll it, do not subscribe. */
export const orphanedJobs = adminQuery({
  args: {},
  handler: async (ctx): Promise<WaitingJobs> => {
    const { functions, complete } = await waitingJobs(ctx);
    return { functions: functions.filter(({ function: path }) => isOrphaned(ctx.inspector, path)), complete };
  },
});

/** The service's functions always exist; those of the main process are unknown in isolates. */
function isOrphaned(inspector: Inspector, path: string): boolean {
  return !path.startsWith("_") && !inspector.has(path);
}

/** Rows read for one page when a filter drops most of them. */
const ROWS_READ_MAX = 4_000;

/** A cron job, as administrators see it. */
export interface CronSummary {
  readonly name: string;
  readonly schedule: CronSchedule;
  readonly function: string;
  readonly kind: JobKind;
  readonly args: Readonly<Record<string, unknown>>;
  readonly ofService: boolean;
  /** `null` if it never runs again. */
  readonly nextRun: number | null;
  readonly lastRun: number | null;
  /** State of the newest run; `null` if there was none or its result was deleted. */
  readonly lastState: JobState | null;
}

/** Lists all cron jobs by name. */
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

/** Cancels a pending or running scheduled function. A running action continues, but its result is discarded. */
export const cancelJob = adminMutation({
  args: { jobId: z.string() },
  handler: async (ctx, { jobId }): Promise<null> => {
    const job = await existing(ctx, jobId);
    if (job.state.kind !== "pending" && job.state.kind !== "inProgress") throw ended(job);
    if (job.state.kind === "pending") onNotPending(ctx, job);
    await ctx.db.patch(job._id, { state: { kind: "canceled" }, completedTime: Date.now() });
    return null;
  },
});

export const runJobNow = adminMutation({
  args: { jobId: z.string() },
  handler: async (ctx, { jobId }): Promise<null> => {
    const job = await existing(ctx, jobId);
    if (job.state.kind !== "pending") throw ended(job);
    if (job.scheduledTime > Date.now()) await ctx.db.patch(job._id, { scheduledTime: Date.now() });
    return null;
  },
});

/** Schedules the function of a failed or canceled job again, with the same arguments. Repeated calls return the same job. */
export const retryJob = adminMutation({
  args: { jobId: z.string() },
  handler: async (ctx, { jobId }): Promise<{ jobId: string }> => {
    const { _id, name, args, functionKind, state, retriedBy } = await existing(ctx, jobId);
    if (retriedBy !== undefined) return { jobId: retriedBy };
    if (state.kind !== "failed" && state.kind !== "canceled") {
      throw new UserError("job_not_failed", `The scheduled function has not failed: ${state.kind}`);
    }
    const again = {
      name,
      args,
      functionKind,
      scheduledTime: Date.now(),
      state: { kind: "pending" },
    } as const;
    const retry = await ctx.db.insert("_scheduled_functions", again);
    await ctx.db.patch(_id, { retriedBy: retry });
    return { jobId: retry };
  },
});

/** Runs a cron job now without changing its next run. Throws `cron_running` if a run has not ended. */
export const runCronNow = adminMutation({
  args: { name: z.string() },
  handler: async (ctx, { name }): Promise<{ jobId: Id<"_scheduled_functions"> }> => {
    const row = await ctx.db.query("_crons").withIndex("by_name", (q) => q.eq("name", name)).unique();
    if (row === null) throw new UserError("cron_not_found", "Cron job not found");
    const last = row.lastJob === undefined ? null : await ctx.db.get(row.lastJob);
    if (last?.state.kind === "pending" || last?.state.kind === "inProgress") {
      throw new UserError("cron_running", "The previous run of this cron job has not ended");
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
  if (job === null) throw new UserError("job_not_found", "Scheduled function not found");
  return job;
}

function ended({ state }: SchedulerDoc<"_scheduled_functions">): UserError {
  return new UserError("job_not_waiting", `The scheduled function is not pending: ${state.kind}`);
}

function summaryOf(job: SchedulerDoc<"_scheduled_functions">, inspector: Inspector): JobSummary {
  return {
    jobId: job._id,
    name: job.name,
    args: job.args,
    kind: job.functionKind,
    scheduledTime: job.scheduledTime,
    completedTime: job.completedTime ?? null,
    state: job.state,
    orphaned: isOrphaned(inspector, job.name),
    retried: job.retriedBy !== undefined,
  };
}
