/** A shared list of tasks: everyone reads it, signed-in users change it. */
import { type Id, id, UserError } from "syncline/server";
import { z } from "zod";
import { internalMutation, mutation, query, type QueryCtx } from "./schema.ts";

/** Returns the newest tasks, and again after each change. */
export const list = query({
  args: {},
  handler: (ctx) => ctx.db.query("tasks").order("desc").take(100),
});

export const add = mutation({
  args: { text: z.string().trim().min(1).max(200) },
  handler: (ctx, { text }) => ctx.db.insert("tasks", { text, done: false, by: signedIn(ctx) }),
});

export const setDone = mutation({
  args: { task: id("tasks"), done: z.boolean() },
  handler: async (ctx, { task, done }) => {
    signedIn(ctx);
    if (await ctx.db.get(task) === null) throw new UserError("gone", "Another user has removed this task");
    await ctx.db.patch(task, { done });
  },
});

export const remove = mutation({
  args: { task: id("tasks") },
  handler: async (ctx, { task }) => {
    signedIn(ctx);
    if (await ctx.db.get(task) !== null) await ctx.db.delete(task);
  },
});

/** Adds sample tasks: `npm run seed`, while the app runs. */
export const seed = internalMutation({
  args: {},
  handler: async (ctx) => {
    const user = await ctx.db.query("_users").first();
    if (user === null) {
      throw new UserError("no_user", "Sign up in the app first: each task belongs to a user");
    }
    for (const text of ["Buy milk", "Call Ada", "Water the plants"]) {
      await ctx.db.insert("tasks", { text, done: false, by: user._id });
    }
    return "Added three tasks";
  },
});

/** Returns the calling user. Clients can call every function that is not internal, so each mutation checks. */
function signedIn(ctx: QueryCtx): Id<"_users"> {
  const user = ctx.auth.userId();
  if (user === null) throw new UserError("signed_out", "Sign in first");
  return user;
}
