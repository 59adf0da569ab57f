/** A job's steps, each a transaction: whoever asks twice, or too late, changes nothing. */
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
  systemMutation,
} from "../tables.ts";
import { heldUntil, leftWaiting, lineageOf, putOff } from "./schedule.ts";

const jobId = id("_scheduled_functions");

/** A waiting job as main remembers it. Jobs of one kind run in the order of `scheduledTime`, then `creationTime`. */
export interface PendingJob {
  readonly id: Id<"_scheduled_functions">;
  readonly name: string;
  readonly scheduledTime: number;
  readonly creationTime: number;
}

/** The first waiting jobs of a kind, and whether there may be more. */
export const pending = internalQuery({
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

/** How a job went; `null` when it does not wait any more. */
export interface RunResult {
  readonly state: JobState | null;
  /** Where it failed, in the author's files. */
  readonly stack?: string;
  /** When it is to run instead, because too many of its kin wait. */
  readonly putOffTo?: number;
  /** Time it took, by a clock that does not stand still. */
  readonly ms: number;
}

/** Taken before app code is loaded, for which the clock stands still. */
const monotonic = performance.now.bind(performance);

/**
 * Runs a job that is a mutation. Its writes and its end are one commit; those of a mutation that throws are undone, and
 * that it failed is what remains.
 */
export const runMutation = systemMutation({
  args: { id: jobId },
  handler: async (ctx, { id }): Promise<RunResult> => {
    const job = await ctx.db.get(id);
    if (job?.state.kind !== "pending") return { state: null, ms: 0 };
    const putOffTo = heldUntil(job);
    if (putOffTo !== null) {
      await putOff(ctx, job, putOffTo);
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
      ctx.log.error(`The scheduled function "${job.name}" failed`, { error: thrown.message });
      state = failure(thrown.message);
      stack = thrown.stack;
    }
    leftWaiting(ctx, job);
    await end(ctx, id, state);
    return { state, ...(stack !== undefined && { stack }), ms: monotonic() - startedAt };
  },
});

/** What an action is called with. */
export interface BegunAction {
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly lineage: Lineage;
}

/** Marks an action as running before it is started; `null` when it does not wait any more, a time when it is put off. */
export const begin = systemMutation({
  args: { id: jobId },
  handler: async (ctx, { id }): Promise<BegunAction | number | null> => {
    const job = await ctx.db.get(id);
    if (job?.state.kind !== "pending") return null;
    const putOffTo = heldUntil(job);
    if (putOffTo !== null) {
      await putOff(ctx, job, putOffTo);
      return putOffTo;
    }
    await ctx.db.patch(id, { state: { kind: "inProgress" } });
    leftWaiting(ctx, job);
    return { name: job.name, args: job.args, lineage: lineageOf(job) };
  },
});

/** Puts back an action that was never started. */
export const putBack = internalMutation({
  args: { id: jobId },
  handler: async (ctx, { id }): Promise<void> => {
    const job = await ctx.db.get(id);
    if (job?.state.kind === "inProgress") await ctx.db.patch(id, { state: { kind: "pending" } });
  },
});

/** Notes how an action ended, unless it was canceled meanwhile. */
export const finish = internalMutation({
  args: { id: jobId, error: z.string().nullable() },
  handler: async (ctx, { id, error }): Promise<void> => {
    const job = await ctx.db.get(id);
    if (job?.state.kind !== "inProgress") return;
    await end(ctx, id, error === null ? { kind: "success" } : failure(error));
  },
});

/** Notes that a job failed in a way that undid all of it: over its time, or with its isolate. */
export const fail = internalMutation({
  args: { id: jobId, error: z.string() },
  handler: async (ctx, { id, error }): Promise<void> => {
    const job = await ctx.db.get(id);
    if (job?.state.kind === "pending") await end(ctx, id, failure(error));
  },
});

const INTERRUPTED =
  "Interrupted: the server ended while the action was running. It is not run again, because nobody knows how far it came";

/** After a start: marks some actions that were running when the server ended as failed. Returns whether there are more. */
export const interrupt = internalMutation({
  args: {},
  handler: async (ctx): Promise<boolean> => {
    const rows = schedulerLimits.interruptedAtOnce;
    const running = await ctx.db.query("_scheduled_functions")
      .withIndex("by_due", (q) => q.eq("state.kind", "inProgress")).take(rows);
    for (const { _id } of running) await end(ctx, _id, failure(INTERRUPTED));
    return running.length === rows;
  },
});

/** Deletes some of the jobs that ended before a time. Returns whether there are more. */
export const clean = internalMutation({
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
