/** Transactions on jobs. Each checks the job's state, so duplicate or late calls have no effect. */
import { z } from "zod";
import { type Id, id } from "../../functions/api/service.ts";
import { callError } from "../../functions/isolate/mod.ts";
import type { Lineage } from "../../functions/api/service.ts";
import { schedulerLimits } from "../../functions/limits.ts";
import {
  functionKindSchema,
  internalMutation,
  internalQuery,
  type JobState,
  type SchedulerMutationCtx,
  type SchedulerQueryCtx,
  systemMutation,
  systemQuery,
} from "../tables.ts";
import { deferJob, deferredUntil, lineageOf, onNotPending } from "./schedule.ts";

const jobId = id("_scheduled_functions");

/** A pending job in the main process. Jobs of one kind run in the order of `scheduledTime`, then `creationTime`. */
export interface PendingJob {
  readonly id: Id<"_scheduled_functions">;
  readonly name: string;
  readonly scheduledTime: number;
  readonly creationTime: number;
}

/** Returns the first pending jobs of a kind, and whether there may be more. */
const pending = internalQuery({
  args: { functionKind: functionKindSchema },
  handler: async (
    ctx,
    { functionKind },
  ): Promise<{ readonly jobs: PendingJob[]; readonly more: boolean }> => {
    const jobs: PendingJob[] = [];
    let chars = 0;
    const waiting = ctx.db.query("_scheduled_functions").withIndex(
      "by_due",
      (q) => q.eq("state.kind", "pending").eq("functionKind", functionKind),
    );
    for await (const { _id, _creationTime, name, scheduledTime, args } of waiting) {
      jobs.push({ id: _id, name, scheduledTime, creationTime: _creationTime });
      chars += JSON.stringify(args).length;
      if (jobs.length >= schedulerLimits.jobsLoadedMax || chars >= schedulerLimits.jobsLoadedCharsMax) {
        return { jobs, more: true };
      }
    }
    return { jobs, more: false };
  },
});

/** Waiting jobs, counted by the function they call. */
export interface WaitingJobs {
  readonly functions: readonly { readonly function: string; readonly jobs: number }[];
  /** Whether all of them were counted: there is a bound. */
  readonly complete: boolean;
}

/** Counts the waiting jobs of the app's functions, in the order of the functions' paths. */
const waiting = internalQuery({ args: {}, handler: waitingJobs });

export async function waitingJobs({ db }: SchedulerQueryCtx): Promise<WaitingJobs> {
  const counts = new Map<string, number>();
  let left: number = schedulerLimits.jobsCountedMax;
  let chars = 0;
  const rows = db.query("_scheduled_functions").withIndex("by_due", (q) => q.eq("state.kind", "pending"));
  for await (const { name, args } of rows) {
    if (--left < 0 || chars > schedulerLimits.jobsCountedCharsMax) return counted(counts, false);
    chars += JSON.stringify(args).length;
    if (!name.startsWith("_")) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counted(counts, true);
}

/** Failures that administrators should know about. */
export interface RecentFailures {
  /** Paths of functions whose jobs failed since a time and were not retried. */
  readonly jobs: readonly string[];
  /** Cron jobs whose last run failed. */
  readonly crons: readonly { readonly name: string; readonly error: string }[];
}

/** Returns the failures of functions that exist. */
const failures = systemQuery({
  args: { since: z.number() },
  handler: async (ctx, { since }): Promise<RecentFailures> => {
    const crons: { name: string; error: string }[] = [];
    const cronJobs = new Set<string>();
    for (const { name, lastJob } of await ctx.db.query("_crons").withIndex("by_name").collect()) {
      if (lastJob === undefined) continue;
      cronJobs.add(lastJob);
      const { state } = await ctx.db.get(lastJob) ?? {};
      if (state?.kind === "failed") crons.push({ name, error: state.error });
    }
    const jobs = new Set<string>();
    for (const kind of functionKindSchema.options) {
      const failed = ctx.db.query("_scheduled_functions").withIndex(
        "by_due",
        (q) => q.eq("state.kind", "failed").eq("functionKind", kind).gt("scheduledTime", since),
      ).order("desc");
      for (const { _id, name, retriedBy } of await failed.take(schedulerLimits.failuresReadMax)) {
        const exists = name.startsWith("_") || ctx.inspector.has(name);
        if (exists && retriedBy === undefined && !cronJobs.has(_id)) jobs.add(name);
      }
    }
    return { jobs: [...jobs], crons };
  },
});

function counted(counts: ReadonlyMap<string, number>, complete: boolean): WaitingJobs {
  const functions = [...counts].map(([path, jobs]) => ({ function: path, jobs }))
    .sort((one, other) => one.function < other.function ? -1 : 1);
  return { functions, complete };
}

/** Result of running a mutation; `state` is `null` if the job was no longer pending. */
export interface RunResult {
  readonly state: JobState | null;
  /** Stack trace of a failure, in the author's files. */
  readonly stack?: string;
  /** Time to which the job was deferred instead of being run. */
  readonly putOffTo?: number;
  /** Duration by a real clock. */
  readonly ms: number;
}

/** Captured before app code is loaded, for which time is frozen. */
const monotonic = performance.now.bind(performance);

/** Runs a mutation job; writes and result are one commit. If it throws, only the failure is recorded. */
const runMutation = systemMutation({
  args: { id: jobId },
  handler: async (ctx, { id }): Promise<RunResult> => {
    const job = await ctx.db.get(id);
    if (job?.state.kind !== "pending") return { state: null, ms: 0 };
    const putOffTo = deferredUntil(job);
    if (putOffTo !== null) {
      await deferJob(ctx, job, putOffTo);
      return { state: null, putOffTo, ms: 0 };
    }
    let state: JobState = { kind: "success" };
    let stack: string | undefined;
    const startedAt = monotonic();
    ctx.lineage.begin(lineageOf(job));
    try {
      await ctx.runMutation(job.name, job.args);
    } catch (error) {
      const thrown = callError(error);
      ctx.log.error(`Scheduled function "${job.name}" failed`, { error: thrown.message });
      state = failure(thrown.message);
      stack = thrown.stack;
    }
    onNotPending(ctx, job);
    await end(ctx, id, state);
    return { state, ...(stack !== undefined && { stack }), ms: monotonic() - startedAt };
  },
});

export interface BegunAction {
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly lineage: Lineage;
}

/** Marks an action as running before it starts. Returns `null` if it is no longer pending, or the time it was deferred to. */
const begin = systemMutation({
  args: { id: jobId },
  handler: async (ctx, { id }): Promise<BegunAction | number | null> => {
    const job = await ctx.db.get(id);
    if (job?.state.kind !== "pending") return null;
    const putOffTo = deferredUntil(job);
    if (putOffTo !== null) {
      await deferJob(ctx, job, putOffTo);
      return putOffTo;
    }
    await ctx.db.patch(id, { state: { kind: "inProgress" } });
    onNotPending(ctx, job);
    return { name: job.name, args: job.args, lineage: lineageOf(job) };
  },
});

/** Makes an action that was never started pending again. */
const requeue = internalMutation({
  args: { id: jobId },
  handler: async (ctx, { id }): Promise<void> => {
    const job = await ctx.db.get(id);
    if (job?.state.kind === "inProgress") await ctx.db.patch(id, { state: { kind: "pending" } });
  },
});

/** Records the result of an action, unless it was canceled. */
const finish = internalMutation({
  args: { id: jobId, error: z.string().nullable() },
  handler: async (ctx, { id, error }): Promise<void> => {
    const job = await ctx.db.get(id);
    if (job?.state.kind !== "inProgress") return;
    await end(ctx, id, error === null ? { kind: "success" } : failure(error));
  },
});

/** Records a failure that rolled back the whole mutation: a timeout or a lost isolate. */
const fail = internalMutation({
  args: { id: jobId, error: z.string() },
  handler: async (ctx, { id, error }): Promise<void> => {
    const job = await ctx.db.get(id);
    if (job?.state.kind === "pending") await end(ctx, id, failure(error));
  },
});

const INTERRUPTED =
  "Interrupted: the server stopped while the action was running. It is not retried, because it may have had side effects";

/** Marks actions that were running when the server stopped as failed, in batches. Returns whether there are more. */
const interrupt = internalMutation({
  args: {},
  handler: async (ctx): Promise<boolean> => {
    const rows = schedulerLimits.interruptedAtOnce;
    const running = await ctx.db.query("_scheduled_functions")
      .withIndex("by_due", (q) => q.eq("state.kind", "inProgress")).take(rows);
    for (const { _id } of running) await end(ctx, _id, failure(INTERRUPTED));
    return running.length === rows;
  },
});

/** Deletes a batch of jobs that ended before a time. Returns whether there are more. */
const clean = internalMutation({
  args: { before: z.number() },
  handler: async (ctx, { before }): Promise<boolean> => {
    const rows = schedulerLimits.rowsCleanedMax;
    const old = await ctx.db.query("_scheduled_functions")
      .withIndex("by_end", (q) => q.gte("completedTime", 0).lt("completedTime", before)).take(rows);
    for (const { _id } of old) await ctx.db.delete(_id);
    return old.length === rows;
  },
});

async function end(
  ctx: SchedulerMutationCtx,
  id: Id<"_scheduled_functions">,
  state: JobState,
): Promise<void> {
  await ctx.db.patch(id, { state, completedTime: Date.now() });
}

function failure(message: string): JobState {
  const max = schedulerLimits.errorCharsMax;
  return { kind: "failed", error: message.length > max ? `${message.slice(0, max - 3)}...` : message };
}

/** Called by the server only, at `_system/scheduler:<name>`. */
export const jobFunctions = {
  begin,
  clean,
  fail,
  failures,
  finish,
  interrupt,
  pending,
  requeue,
  runMutation,
  waiting,
};
