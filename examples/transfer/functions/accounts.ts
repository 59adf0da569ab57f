/** Reading accounts. */
import { query } from "syncline/server";
import { z } from "zod";

/** The account with a number, or `null`. */
export const get_account = query({
  args: { number: z.int() },
  handler: async (ctx, { number }) =>
    await ctx.db.query("accounts").withIndex("by_number", (q) => q.eq("number", number)).first(),
});

/** Number of accounts and sum of balances from `start` on, for `count` numbers: what a transfer must not change. */
export const sum_range = query({
  args: { start: z.int(), count: z.int().min(1).max(25_000) },
  handler: async (ctx, { start, count }) => {
    const accounts = await ctx.db.query("accounts")
      .withIndex("by_number", (q) => q.gte("number", start).lt("number", start + count))
      .collect();
    return {
      accounts: accounts.length,
      balance: accounts.reduce((sum: number, account: { balance: number }) => sum + account.balance, 0),
    };
  },
});
