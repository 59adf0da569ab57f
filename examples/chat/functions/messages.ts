/** Reading and writing messages. */
import { paginationOpts, UserError } from "syncline/server";
import { z } from "zod";
import { internal } from "./_generated.ts";
import { speaker } from "./people.ts";
import { mutation, query } from "./schema.ts";

/** The newest 50 messages of a channel, newest first. Live: subscribers see every new message. */
export const list = query({
  args: { channel: z.string() },
  handler: async (ctx, { channel }) =>
    await ctx.db.query("messages").withIndex("by_channel", (q) => q.eq("channel", channel)).order("desc")
      .take(50),
});

/** All messages of a channel, page by page, newest first. */
export const page = query({
  args: { channel: z.string(), paginationOpts },
  handler: async (ctx, { channel, paginationOpts }) =>
    await ctx.db.query("messages").withIndex("by_channel", (q) => q.eq("channel", channel)).order("desc")
      .paginate(paginationOpts),
});

/** Posts a message and returns its id. `name` counts for guests; who is signed in has the name of the account. */
export const send = mutation({
  args: { channel: z.string().max(32), name: z.string().max(40), body: z.string().max(2000) },
  handler: async (ctx, args) => {
    const body = args.body.trim();
    if (body === "") throw new UserError("empty_message", "Say something", { field: "body" });
    const person = await speaker(ctx, args.name);
    await ctx.rateLimit("messages", {
      key: person.author ?? `guest ${person.name}`,
      rate: 100,
      per: "minute",
    });
    const question = /^\/ask +(.+)/s.exec(body)?.[1];
    if (question !== undefined) {
      await ctx.scheduler.runAfter(0, internal.assistant.answer, { channel: args.channel, question });
    }
    return await ctx.db.insert("messages", { channel: args.channel, body, ...person });
  },
});
