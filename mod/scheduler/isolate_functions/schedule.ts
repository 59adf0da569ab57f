/** What `ctx.scheduler` calls, in the caller's transaction or, from actions, in one of its own. */
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
import { Growth } from "./growth.ts";

const growth = new Growth();

/** To be told when a job does not wait any more, by the mutation that changes it. */
export function leftWaiting(
  { lineage }: { readonly lineage: LineageKeeper },
  { chain }: SchedulerDoc<"_scheduled_functions">,
): void {
  if (chain === undefined || chain.generation < 2) return;
  lineage.onUndone(growth.left(chain.root, chain.putOff ?? false));
}

/** When a job that is due has to wait, because too many of its chain do, to when; `null` when it may run. */
export function heldUntil({ chain }: SchedulerDoc<"_scheduled_functions">): number | null {
  return chain === undefined || chain.putOff === true ? null : growth.putOff(chain.root, Date.now());
}

/** Puts a job off. */
export async function putOff(
  ctx: SchedulerMutationCtx,
  { _id, chain }: SchedulerDoc<"_scheduled_functions">,
  scheduledTime: number,
): Promise<void> {
  if (chain !== undefined) await ctx.db.patch(_id, { scheduledTime, chain: { ...chain, putOff: true } });
}

/** What is called by a job goes back to the same one as the job, or to the job. */
export function lineageOf({ _id, chain }: SchedulerDoc<"_scheduled_functions">): Lineage {
  return { root: chain?.root ?? _id, generation: chain?.generation ?? 0 };
}

/** Writes down a job. Functions of the service cannot be scheduled by whoever reaches this one. */
export const schedule = systemMutation({
  args: {
    name: z.string().max(functionLimits.udfPathCharsMax),
    args: z.record(z.string(), z.unknown()),
    scheduledTime: z.number(),
    functionKind: functionKindSchema,
  },
  handler: async (ctx, job): Promise<Id<"_scheduled_functions">> => {
    if (isSystemPath(job.name)) throw new TypeError(`There is no function "${job.name}" to schedule`);
    if (job.scheduledTime - Date.now() > schedulerLimits.aheadMsMax + 60_000) {
      throw new RangeError("A function cannot be scheduled more than five years ahead");
    }
    const { current } = ctx.lineage;
    if (current === null) {
      return await ctx.db.insert("_scheduled_functions", { ...job, state: { kind: "pending" } });
    }
    const generation = current.generation + 1;
    let { scheduledTime } = job;
    if (generation > 1) {
      scheduledTime = growth.scheduled(current.root, scheduledTime, Date.now());
      ctx.lineage.onUndone(() => void growth.left(current.root, false));
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

/** Cancels a job that waits or runs; what has ended, or is not there any more, stays as it is. */
export const cancel = systemMutation({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<void> => {
    const jobId = ctx.db.normalizeId("_scheduled_functions", id);
    if (jobId === null) throw new TypeError(`cancel() needs the id of a scheduled function, not "${id}"`);
    const job = await ctx.db.get(jobId);
    if (job === null || (job.state.kind !== "pending" && job.state.kind !== "inProgress")) return;
    if (job.state.kind === "pending") leftWaiting(ctx, job);
    await ctx.db.patch(jobId, { state: { kind: "canceled" }, completedTime: Date.now() });
  },
});
