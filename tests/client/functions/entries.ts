/** Entries with their author and order. */
import { UserError } from "syncline/server";
import { z } from "zod";
import { mutation, query } from "./schema.ts";

/** Adds an entry, or fails when the number divides by 50, and returns the number. */
export const append = mutation({
  args: { author: z.string(), n: z.int() },
  handler: async (ctx, { author, n }) => {
    await ctx.db.insert("entries", { author, n });
    // After the write, so that a missing rollback is visible.
    if (n % 50 === 49) throw new UserError("refused", "This one is refused", n);
    return n;
  },
});

/** All numbers of an author, in the order they were written. */
export const numbers = query({
  args: { author: z.string() },
  handler: async (ctx, { author }) => {
    const entries = await ctx.db.query("entries").withIndex("by_author", (q) => q.eq("author", author))
      .collect();
    return entries.map((entry) => entry.n);
  },
});

/** The newest entries of all authors. */
export const newest = query({
  args: { count: z.int() },
  handler: async (ctx, { count }) => await ctx.db.query("entries").order("desc").take(count),
});

/** All numbers of all authors, found at leisure. */
export const slowly = query({
  args: { rounds: z.int() },
  handler: async (ctx, { rounds }) => {
    const entries = await ctx.db.query("entries").collect();
    let x = 1;
    for (let i = 0; i < rounds; i++) x = (x * 48_271) % 2_147_483_647;
    return x > 0 ? entries.map((entry) => entry.n) : [];
  },
});
