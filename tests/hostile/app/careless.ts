/** Writes that nobody awaits. */
import { mutation } from "syncline/server";

export const leave = mutation({
  args: {},
  handler: (ctx) => {
    [1, 2].forEach(async (n) => {
      await ctx.db.insert("counters", { user: n as never, n });
    });
    return "done";
  },
});
