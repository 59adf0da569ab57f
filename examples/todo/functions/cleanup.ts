/** What is done does not stay for ever. */
import { internalMutation } from "./schema.ts";

/** Done items stay this long, in milliseconds. */
const KEPT_MS = 30 * 86_400_000;
/** Items removed in one transaction. */
const BATCH = 1_000;

/** Removes items of all users that have been done for 30 days; gives back how many. */
export const removeDone = internalMutation({
  args: {},
  handler: async (ctx) => {
    const old = await ctx.db.query("items")
      .withIndex("by_done", (q) => q.eq("status.kind", "done").lt("status.at", Date.now() - KEPT_MS))
      .take(BATCH);
    for (const { _id } of old) await ctx.db.delete(_id);
    return old.length;
  },
});
