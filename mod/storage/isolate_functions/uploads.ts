/** Uploads as transactions: a URL is used once, and a file exists from the commit that uses it. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import type { ImportApi } from "../../functions/isolate/mod.ts";
import { internalMutation, internalQuery, newFileShape } from "../tables.ts";

/** Whether an upload with this URL has succeeded. */
export const isUploadUsed = internalQuery({
  args: { token: z.string() },
  handler: async (ctx, { token }): Promise<boolean> =>
    await ctx.db.query("_uploads").withIndex("by_token", (q) => q.eq("token", token)).first() !== null,
});

/** The file that the upload with this URL has become; `null` when there is none, or none any more. */
export const uploadedFile = internalQuery({
  args: { token: z.string() },
  handler: async (ctx, { token }): Promise<{ id: string; size: number } | null> => {
    const used = await ctx.db.query("_uploads").withIndex("by_token", (q) => q.eq("token", token)).first();
    const file = used === null ? null : await ctx.db.get(used.file);
    return file === null ? null : { id: file._id, size: file.size };
  },
});

/** Stores a file's document and marks its upload URL as used; `token` is `null` for files that actions store. The same blob with the same URL once more is the same file: who did not
 * hear the answer may ask again. */
export const commitFile = internalMutation({
  args: { token: z.string().nullable(), file: z.strictObject(newFileShape), now: z.number() },
  handler: async (ctx, { token, file, now }): Promise<string> => {
    if (token !== null) {
      const used = await ctx.db.query("_uploads").withIndex("by_token", (q) => q.eq("token", token)).first();
      if (used !== null) {
        const known = await ctx.db.get(used.file);
        if (known?.blob === file.blob) return known._id;
        throw new UserError("upload_url_used");
      }
    }
    const id = await ctx.db.insert("_storage", file);
    if (token !== null) await ctx.db.insert("_uploads", { token, file: id, usedAt: now });
    return id;
  },
});

/** Ids that files may be given which come from elsewhere; nothing is stored. */
export const newFileIds = internalMutation({
  args: { count: z.int().min(0) },
  handler: async (ctx, { count }): Promise<string[]> => {
    const before = importerOf(ctx).savepoint();
    const ids: string[] = [];
    const file = { blob: "0".repeat(32), sha256: "0".repeat(64), size: 0 };
    while (ids.length < count) ids.push(await ctx.db.insert("_storage", file));
    before.rollback();
    return ids;
  },
});

/** Stores the documents of files that come from elsewhere; their blobs are there. */
export const importFiles = internalMutation({
  args: {
    files: z.array(z.strictObject({ ...newFileShape, _id: z.string(), _creationTime: z.number() })),
  },
  handler: (ctx, { files }): void => {
    for (const file of files) importerOf(ctx).store("_storage", file, "insert");
  },
});

/** Functions of the service have one, which the type of `ctx` that authors know does not say. */
function importerOf(ctx: object): ImportApi {
  return (ctx as { readonly importer: ImportApi }).importer;
}
