/** Reading and writing messages. */
import { UserError } from "syncline/server";
import { z } from "zod";
import { mutation, query } from "./schema.ts";

/** The newest 50 messages of a channel, newest first. Live: subscribers see every new message. */
export const list = query({
  args: { channel: z.string() },
  handler: async (ctx, { channel }) =>
    await ctx.db.query("messages").withIndex("by_channel", (q) => q.eq("channel", channel)).order("desc")
      .take(50),
});

/** Posts a message and returns its id. */
export const send = mutation({
  args: { channel: z.string().max(32), name: z.string().max(40), body: z.string().max(2000) },
  handler: async (ctx, args) => {
    const name = args.name.trim();
    const body = args.body.trim();
    if (body === "") throw new UserError("empty_message", "Say something", { field: "body" });
    if (name === "") throw new UserError("no_name", "Tell the others your name first", { field: "name" });
    return await ctx.db.insert("messages", { channel: args.channel, name, body });
  },
});
