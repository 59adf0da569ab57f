/** Functions called by many clients at once. */
import { untypedMutation } from "syncline/server";
import { z } from "zod";

export const bump = untypedMutation({
  args: { n: z.number() },
  handler: async (ctx, { n }) => {
    const user = `crowd ${n}`;
    const row = await ctx.db.query("counters").withIndex("by_user", (q) => q.eq("user", user)).first();
    if (row === null) await ctx.db.insert("counters", { user, n: 1 });
    else await ctx.db.patch(row._id, { n: row.n + 1 });
    return null;
  },
});
