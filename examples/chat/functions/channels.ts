/** The list of channels. */
import { UserError } from "syncline/server";
import { z } from "zod";
import { mutation, query } from "./schema.ts";

/** Names of up to 100 channels in alphabetical order. */
export const list = query({
  args: {},
  handler: async (ctx) => {
    const channels = await ctx.db.query("channels").withIndex("by_name", (q) => q).take(100);
    return channels.map((channel) => channel.name);
  },
});

/** Adds a channel unless it exists, and returns its name. */
export const create = mutation({
  args: { name: z.string() },
  handler: async (ctx, args) => {
    const name = args.name.trim().toLowerCase().replaceAll(/\s+/g, "-");
    if (!/^[\p{L}\p{N}_-]{1,32}$/u.test(name)) {
      throw new UserError("bad_channel", "Use up to 32 letters, digits and dashes", { field: "name" });
    }
    const known = await ctx.db.query("channels").withIndex("by_name", (q) => q.eq("name", name)).first();
    if (known === null) await ctx.db.insert("channels", { name });
    return name;
  },
});
