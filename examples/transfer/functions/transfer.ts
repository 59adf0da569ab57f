/** The mutation of the public "transfer" benchmark. */
import { z } from "zod";
import { mutation } from "./schema.ts";

/**
 * Moves `amount` from one account to another, both named by their number. As the benchmark has it, a transfer that cannot
 * be made moves nothing and is no error.
 */
export const transfer = mutation({
  args: { from_id: z.int(), to_id: z.int(), amount: z.number() },
  handler: async (ctx, { from_id, to_id, amount }) => {
    if (from_id === to_id || amount <= 0) return;
    const account = (id: number) =>
      ctx.db.query("accounts").withIndex("by_account_id", (q) => q.eq("id", id)).first();
    const source = await account(from_id);
    const target = await account(to_id);
    if (source === null || target === null || source.balance < amount) return;
    await ctx.db.patch(source._id, { balance: source.balance - amount });
    await ctx.db.patch(target._id, { balance: target.balance + amount });
  },
});
