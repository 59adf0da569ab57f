import { internalMutation, query } from "syncline/server";
import { z } from "zod";

export const add = internalMutation({
  args: { text: z.string() },
  handler: async (ctx, { text }) => {
    await ctx.db.insert("notes", { text });
  },
});

export const texts = query({
  handler: async (ctx) => (await ctx.db.query("notes").collect()).map(({ text }) => text as string),
});
