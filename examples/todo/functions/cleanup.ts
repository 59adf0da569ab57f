/** Removes items some time after they are done. */
import { internal } from "./_generated.ts";
import { removeAttachmentsOf } from "./attachments.ts";
import { internalMutation } from "./schema.ts";

/** Done items stay this long, in milliseconds. */
const KEPT_MS = 30 * 86_400_000;
/** Items removed in one transaction. */
const BATCH = 500;

/** Removes items that have been done for 30 days, and returns their number. Further batches follow at once. */
export const removeDone = internalMutation({
  args: {},
  handler: async (ctx) => {
    const old = await ctx.db.query("items")
      .withIndex("by_done", (q) => q.eq("status.kind", "done").lt("status.at", Date.now() - KEPT_MS))
      .take(BATCH);
    for (const { _id } of old) {
      await removeAttachmentsOf(ctx, _id);
      await ctx.db.delete(_id);
    }
    if (old.length === BATCH) await ctx.scheduler.runAfter(0, internal.cleanup.removeDone);
    return old.length;
  },
});
