/** Reading accounts. */
import { z } from "zod";
import { query } from "./schema.ts";

/** Number and balance of an account, or `null`. */
export const get_account = query({
  args: { id: z.int() },
  handler: async (ctx, { id }) => {
    const account = await ctx.db.query("accounts").withIndex("by_account_id", (q) => q.eq("id", id)).unique();
    return account === null ? null : { id: account.id, balance: account.balance };
  },
});

/** Number of accounts and sum of balances from `start` on, for `count` numbers: what a transfer must not change. */
export const sum_range = query({
  args: { start: z.int(), count: z.int().min(1).max(25_000) },
  handler: async (ctx, { start, count }) => {
    const accounts = await ctx.db.query("accounts")
      .withIndex("by_account_id", (q) => q.gte("id", start).lt("id", start + count))
      .collect();
    return {
      accounts: accounts.length,
      balance: accounts.reduce((sum, account) => sum + account.balance, 0),
    };
  },
});
