/** What `ctx.scheduler` calls, in the caller's transaction or, from actions, in one of its own. */
import { z } from "zod";
import type { Id } from "../../functions/api/service.ts";
import { isSystemPath } from "../../functions/system_functions.ts";
import { functionLimits } from "../../limits.ts";
import { schedulerLimits } from "../../functions/limits.ts";
import { functionKindSchema, internalMutation } from "../tables.ts";

/** Writes down a job. Functions of the service cannot be scheduled by whoever reaches this one. */
export const schedule = internalMutation({
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
    return await ctx.db.insert("_scheduled_functions", { ...job, state: { kind: "pending" } });
  },
});

/** Cancels a job that waits or runs; what has ended, or is not there any more, stays as it is. */
export const cancel = internalMutation({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<void> => {
    const jobId = ctx.db.normalizeId("_scheduled_functions", id);
    if (jobId === null) throw new TypeError(`cancel() needs the id of a scheduled function, not "${id}"`);
    const job = await ctx.db.get(jobId);
    if (job === null || (job.state.kind !== "pending" && job.state.kind !== "inProgress")) return;
    await ctx.db.patch(jobId, { state: { kind: "canceled" }, completedTime: Date.now() });
  },
});
