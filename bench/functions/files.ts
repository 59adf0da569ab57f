/** Uploads of files. */
import { z } from "zod";
import { mutation } from "./schema.ts";

/** Returns a path to upload a file to. */
export const generate = mutation({
  args: {},
  handler: async (ctx) => await ctx.storage.generateUploadUrl(),
});

/** Deletes a file. */
export const remove = mutation({
  args: { id: z.string() },
  handler: async (ctx, { id }) => {
    await ctx.storage.delete(id);
    return null;
  },
});
