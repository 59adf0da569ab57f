import { z } from "zod";
import { mutation, query } from "./schema.ts";

export const list = query({
  args: {},
  handler: (ctx) => ctx.db.query("notes").order("desc").take(50),
});

export const add = mutation({
  args: { text: z.string(), stars: z.int().optional() },
  handler: (ctx, note) => ctx.db.insert("notes", note),
});
