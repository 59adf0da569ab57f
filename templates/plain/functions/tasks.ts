import { id, UserError } from "syncline/server";
import { z } from "zod";
import { mutation, query } from "./schema.ts";

/** Returns the newest tasks. */
export const list = query({
  args: {},
  handler: (ctx) => ctx.db.query("tasks").order("desc").take(100),
});

export const add = mutation({
  args: { text: z.string() },
  handler: async (ctx, { text }) => {
    const by = ctx.auth.userId();
    if (by === null) throw new UserError("signed_out", "Sign in first");
    return await ctx.db.insert("tasks", { text, done: false, by });
  },
});

export const setDone = mutation({
  args: { task: id("tasks"), done: z.boolean() },
  handler: async (ctx, { task, done }) => {
    if (ctx.auth.userId() === null) throw new UserError("signed_out", "Sign in first");
    await ctx.db.patch(task, { done });
  },
});
