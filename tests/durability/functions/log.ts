/** A log that reveals a lost, halved or repeated append at once. */
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";

/** Records `sequence` twice and counts it twice. A second run would return a different result. */
export const append = untypedMutation({
  args: { writer: z.int(), sequence: z.int() },
  handler: async (ctx, { writer, sequence }) => {
    await ctx.db.insert("lefts", { writer, sequence });
    const counter = await ctx.db.query("counters").withIndex("by_writer", (q) => q.eq("writer", writer))
      .unique();
    const count = (counter?.count ?? 0) + 1;
    if (counter === null) await ctx.db.insert("counters", { writer, count });
    else await ctx.db.patch(counter._id, { count });
    const sum = await ctx.db.query("totals").unique();
    const total = (sum?.count ?? 0) + 1;
    if (sum === null) await ctx.db.insert("totals", { count: total });
    else await ctx.db.patch(sum._id, { count: total });
    await ctx.db.insert("rights", { writer, sequence });
    return { sequence, count, total };
  },
});

/** Returns a writer's appends since `from`, by number, from both tables. */
export const entries = untypedQuery({
  args: { writer: z.int(), from: z.int() },
  handler: async (ctx, { writer, from }) => {
    const lefts = await ctx.db.query("lefts")
      .withIndex("by_writer", (q) => q.eq("writer", writer).gte("sequence", from)).collect();
    const rights = await ctx.db.query("rights")
      .withIndex("by_writer", (q) => q.eq("writer", writer).gte("sequence", from)).collect();
    return { lefts: lefts.map((entry) => entry.sequence), rights: rights.map((entry) => entry.sequence) };
  },
});

/** Returns a writer's count and the highest number it appended to each table. */
export const newest = untypedQuery({
  args: { writer: z.int() },
  handler: async (ctx, { writer }) => {
    const counter = await ctx.db.query("counters").withIndex("by_writer", (q) => q.eq("writer", writer))
      .unique();
    const left = await ctx.db.query("lefts")
      .withIndex("by_writer", (q) => q.eq("writer", writer)).order("desc").first();
    const right = await ctx.db.query("rights")
      .withIndex("by_writer", (q) => q.eq("writer", writer)).order("desc").first();
    return { count: counter?.count ?? 0, left: left?.sequence ?? -1, right: right?.sequence ?? -1 };
  },
});

/** Returns the number of all appends. */
export const total = untypedQuery({
  args: {},
  handler: async (ctx) => (await ctx.db.query("totals").unique())?.count ?? 0,
});
