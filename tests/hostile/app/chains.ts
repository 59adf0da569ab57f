/** Scheduled functions: many, slow, and growing in number. */
import { untypedInternalMutation, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
import { spin } from "./slow.ts";

export const work = untypedInternalMutation({
  args: { ms: z.number() },
  handler: async (ctx, { ms }) => {
    spin(ms);
    const row = await ctx.db.query("counters").withIndex("by_user", (q) => q.eq("user", "jobs")).first();
    if (row !== null) await ctx.db.patch(row._id, { n: row.n - 1 });
    return null;
  },
});

export const plan = untypedMutation({
  args: { count: z.number(), ms: z.number() },
  handler: async (ctx, { count, ms }) => {
    const row = await ctx.db.query("counters").withIndex("by_user", (q) => q.eq("user", "jobs")).first();
    if (row === null) await ctx.db.insert("counters", { user: "jobs", n: count });
    else await ctx.db.patch(row._id, { n: row.n + count });
    for (let i = 0; i < count; i++) await ctx.scheduler.runAfter(0, "chains:work", { ms });
    return null;
  },
});

export const open = untypedQuery({
  args: {},
  handler: async (ctx) =>
    (await ctx.db.query("counters").withIndex("by_user", (q) => q.eq("user", "jobs")).first())?.n ?? 0,
});

/** Schedules itself ten times. */
export const grow = untypedInternalMutation({
  args: {},
  handler: async (ctx) => {
    for (let i = 0; i < 10; i++) await ctx.scheduler.runAfter(0, "chains:grow", {});
    return null;
  },
});

export const seed = untypedMutation({
  args: {},
  handler: async (ctx) => {
    await ctx.scheduler.runAfter(0, "chains:grow", {});
    return null;
  },
});

/** Number of scheduled functions that wait. */
export const waiting = untypedQuery({
  args: {},
  handler: async (ctx) =>
    (await ctx.db.query("_scheduled_functions").withIndex("by_due", (q) => q.eq("state.kind", "pending"))
      .collect())
      .length,
});
