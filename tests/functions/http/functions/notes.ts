import { untypedInternalMutation, untypedQuery } from "syncline/server";
import { z } from "zod";

export const add = untypedInternalMutation({
  args: { text: z.string() },
  handler: async (ctx, { text }) => {
    await ctx.db.insert("notes", { text });
  },
});

export const texts = untypedQuery({
  handler: async (ctx) => (await ctx.db.query("notes").collect()).map(({ text }) => text as string),
});
