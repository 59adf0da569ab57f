/** Writes without await. */
import { untypedMutation } from "syncline/server";

export const leave = untypedMutation({
  args: {},
  handler: (ctx) => {
    [1, 2].forEach(async (n) => {
      await ctx.db.insert("counters", { user: n as never, n });
    });
    return "done";
  },
});
