/** The mutation of the public "transfer" benchmark. */
import { mutation, UserError } from "syncline/server";
import { z } from "zod";

/** Moves `amount` from one account to another, both named by their number. */
export const transfer = mutation({
  args: { from: z.int(), to: z.int(), amount: z.number().positive() },
  handler: async (ctx, { from, to, amount }) => {
    if (from === to) throw new UserError("same_account", "The two accounts are the same", { number: from });
    const source = await ctx.db.query("accounts").withIndex("by_number", (q) => q.eq("number", from)).first();
    const target = await ctx.db.query("accounts").withIndex("by_number", (q) => q.eq("number", to)).first();
    if (source === null || target === null) {
      throw new UserError("no_account", "There is no such account", { number: source === null ? from : to });
    }
    if (source.balance < amount) {
      throw new UserError("insufficient_funds", "The balance is too low", { balance: source.balance });
    }
    await ctx.db.patch(source._id, { balance: source.balance - amount });
    await ctx.db.patch(target._id, { balance: target.balance + amount });
    return null;
  },
});
