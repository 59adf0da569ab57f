/** Uploads as transactions: a URL is used once, and a file exists from the commit that uses it. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import { internalMutation, internalQuery, newFileShape } from "../tables.ts";

/** Whether an upload with this URL has succeeded. */
export const isUploadUsed = internalQuery({
  args: { token: z.string() },
  handler: async (ctx, { token }): Promise<boolean> =>
    await ctx.db.query("_uploads").withIndex("by_token", (q) => q.eq("token", token)).first() !== null,
});

/** Stores a file's document and marks its upload URL as used; `token` is `null` for files that actions store. */
export const commitFile = internalMutation({
  args: { token: z.string().nullable(), file: z.strictObject(newFileShape), now: z.number() },
  handler: async (ctx, { token, file, now }): Promise<string> => {
    if (token !== null) {
      const used = await ctx.db.query("_uploads").withIndex("by_token", (q) => q.eq("token", token)).first();
      if (used !== null) throw new UserError("upload_url_used");
    }
    const id = await ctx.db.insert("_storage", file);
    if (token !== null) await ctx.db.insert("_uploads", { token, file: id, usedAt: now });
    return id;
  },
});
