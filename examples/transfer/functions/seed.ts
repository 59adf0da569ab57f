/** Fills and empties the accounts, in portions that fit one mutation. */
import { z } from "zod";
import { mutation } from "./schema.ts";

/** Accounts removed by one call of {@linkcode clear_accounts}. */
const CLEAR_PORTION = 1000;

/** Creates the accounts `start` to `start + count - 1`, each with the balance `initial`. */
export const seed_range = mutation({
  args: { start: z.int().min(0), count: z.int().min(0).max(10_000), initial: z.number() },
  handler: async (ctx, { start, count, initial }) => {
    for (let id = start; id < start + count; id++) await ctx.db.insert("accounts", { id, balance: initial });
    return null;
  },
});

/** Removes up to a thousand accounts and says how many: call it until it answers 0. */
export const clear_accounts = mutation({
  args: {},
  handler: async (ctx) => {
    const accounts = await ctx.db.query("accounts").take(CLEAR_PORTION);
    for (const account of accounts) await ctx.db.delete(account._id);
    return accounts.length;
  },
});
