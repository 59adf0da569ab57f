/** Inserts into a table with a declared aggregate, and into the same table without one. */
import { z } from "zod";
import { mutation } from "./schema.ts";

const score = { game: z.string(), points: z.number() };

export const add = mutation({
  args: score,
  handler: async (ctx, fields) => await ctx.db.insert("scores", fields),
});

export const addPlain = mutation({
  args: score,
  handler: async (ctx, fields) => await ctx.db.insert("plainScores", fields),
});

/** Inserts `count` documents into both tables. */
export const fill = mutation({
  args: { start: z.int(), count: z.int().max(2_000), games: z.int() },
  handler: async (ctx, { start, count, games }) => {
    for (let n = start; n < start + count; n++) {
      const fields = { game: `game ${n % games}`, points: n * 7_919 % 1_000_003 };
      await ctx.db.insert("scores", fields);
      await ctx.db.insert("plainScores", fields);
    }
    return null;
  },
});
