/** Functions behind `ctx.scheduler`, run in the caller's transaction, or in their own for actions. */
import { withHelp } from "../../explained.ts";
import { z } from "zod";
import type { Id } from "../../functions/api/service.ts";
import type { Lineage, LineageKeeper } from "../../functions/api/service.ts";
import { isSystemPath } from "../../functions/system_paths.ts";
import { functionLimits } from "../../limits.ts";
import { schedulerLimits } from "../../functions/limits.ts";
import {
  functionKindSchema,
  type SchedulerDoc,
  type SchedulerMutationCtx,
  systemMutation,
} from "../tables.ts";
import { ChainLimiter } from "./chain_limiter.ts";

const chainLimiter = new ChainLimiter();

/** Call in the mutation that makes a job no longer pending. */
export function onNotPending(
  { lineage }: { readonly lineage: LineageKeeper },
  { chain }: SchedulerDoc<"_scheduled_functions">,
): void {
  if (chain === undefined || chain.generation < 2) return;
  lineage.onUndone(chainLimiter.onNotPending(chain.root, chain.putOff ?? false));
}

/** Time to which a due job must be deferred because its chain is over the limit, or `null`. */
export function deferredUntil({ chain }: SchedulerDoc<"_scheduled_functions">): number | null {
  return chain === undefined || chain.putOff === true
    ? null
    : chainLimiter.deferUntil(chain.root, Date.now());
}

/** Defers a job. */
export async function deferJob(
  ctx: SchedulerMutationCtx,
  { _id, chain }: SchedulerDoc<"_scheduled_functions">,
  scheduledTime: number,
): Promise<void> {
  if (chain !== undefined) await ctx.db.patch(_id, { scheduledTime, chain: { ...chain, putOff: true } });
}

/** Lineage of functions called by a job: the root of its chain, or the job itself. */
export function lineageOf({ _id, chain }: SchedulerDoc<"_scheduled_functions">): Lineage {
  return { root: chain?.root ?? _id, generation: chain?.generation ?? 0 };
}

/** Inserts a job. Rejects system functions. */
export const schedule = systemMutation({
  args: {
    name: z.string().max(functionLimits.udfPathCharsMax),
    args: z.record(z.string(), z.unknown()),
    scheduledTime: z.number(),
    functionKind: functionKindSchema,
  },
  handler: async (ctx, job): Promise<Id<"_scheduled_functions">> => {
    if (isSystemPath(job.name)) {
      throw withHelp(new TypeError(`Cannot schedule "${job.name}": function not found`), "schedule");
    }
    if (job.scheduledTime - Date.now() > schedulerLimits.aheadMsMax + 60_000) {
      throw withHelp(new RangeError("Cannot schedule a function more than five years ahead"), "schedule");
    }
    const { current } = ctx.lineage;
    if (current === null) {
      return await ctx.db.insert("_scheduled_functions", { ...job, state: { kind: "pending" } });
    }
    const generation = current.generation + 1;
    let { scheduledTime } = job;
    if (generation > 1) {
      scheduledTime = chainLimiter.onScheduled(current.root, scheduledTime, Date.now());
      ctx.lineage.onUndone(() => void chainLimiter.onNotPending(current.root, false));
    }
    const putOff = scheduledTime > job.scheduledTime;
    const chain = { root: current.root, generation, ...(putOff && { putOff }) };
    return await ctx.db.insert("_scheduled_functions", {
      ...job,
      scheduledTime,
      state: { kind: "pending" },
      chain,
    });
  },
});

/** Cancels a pending or running job; does nothing if it has ended or was deleted. */
export const cancel = systemMutation({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<void> => {
    const jobId = ctx.db.normalizeId("_scheduled_functions", id);
    if (jobId === null) throw new TypeError(`cancel() expects the ID of a scheduled function, got "${id}"`);
    const job = await ctx.db.get(jobId);
    if (job === null || (job.state.kind !== "pending" && job.state.kind !== "inProgress")) return;
    if (job.state.kind === "pending") onNotPending(ctx, job);
    await ctx.db.patch(jobId, { state: { kind: "canceled" }, completedTime: Date.now() });
  },
});
