/** Numbered rows: inserts, reads and changes. */
import { id } from "syncline/server";
import { z } from "zod";
import { mutation, query } from "./schema.ts";

/** Inserts the rows `start` to `start + count - 1` with `chars` characters of text each. */
export const fill = mutation({
  args: { start: z.int(), count: z.int().max(4000), chars: z.int().max(100_000) },
  handler: async (ctx, { start, count, chars }) => {
    for (let number = start; number < start + count; number++) {
      await ctx.db.insert("rows", { number, value: 0, text: "x".repeat(chars) });
    }
    return null;
  },
});

/** Inserts a row and returns it. */
export const add = mutation({
  args: { number: z.int(), value: z.number(), text: z.string().max(1_000) },
  handler: async (ctx, row) => await ctx.db.get(await ctx.db.insert("rows", row)),
});

/** The row with an id, or `null`. */
export const read = query({
  args: { row: id("rows") },
  handler: async (ctx, { row }) => await ctx.db.get(row),
});

/** The ids of the rows from `start` on. */
export const ids = query({
  args: { start: z.int(), count: z.int().max(4_000) },
  handler: async (ctx, { start, count }) => {
    const rows = await ctx.db.query("rows").withIndex("by_number", (q) => q.gte("number", start)).take(count);
    return rows.map(({ _id }) => _id);
  },
});

/** The row with a number, or `null`. */
export const get = query({
  args: { number: z.int() },
  handler: async (ctx, { number }) =>
    await ctx.db.query("rows").withIndex("by_number", (q) => q.eq("number", number)).first(),
});

const runs = new Map<number, number>();

/** Returns how often this process has run the query for a row. */
export const runsOf = query({
  args: { number: z.int() },
  handler: async (ctx, { number }) => {
    await ctx.db.query("rows").withIndex("by_number", (q) => q.eq("number", number)).first();
    const count = (runs.get(number) ?? 0) + 1;
    runs.set(number, count);
    return count;
  },
});

/** The rows from `start` on. */
export const list = query({
  args: { start: z.int(), count: z.int().max(10_000) },
  handler: async (ctx, { start, count }) =>
    await ctx.db.query("rows").withIndex("by_number", (q) => q.gte("number", start)).take(count),
});

/** Changes one row. */
export const set = mutation({
  args: { number: z.int(), value: z.number() },
  handler: async (ctx, { number, value }) => {
    const row = await ctx.db.query("rows").withIndex("by_number", (q) => q.eq("number", number)).first();
    if (row === null) throw new Error(`There is no row ${number}`);
    await ctx.db.patch(row._id, { value });
    return null;
  },
});

/** Takes many times as long as any other query. */
const SLOW_ITERATIONS = 30_000_000;

/** The value of a row, after a long computation. */
export const getSlowly = query({
  args: { number: z.int() },
  handler: async (ctx, { number }) => {
    const row = await ctx.db.query("rows").withIndex("by_number", (q) => q.eq("number", number)).first();
    let sum = 0;
    for (let i = 0; i < SLOW_ITERATIONS; i++) sum = (sum + i) % 7;
    return { value: row?.value ?? null, sum };
  },
});
