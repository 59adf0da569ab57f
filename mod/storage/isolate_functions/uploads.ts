/** Transactions of uploads: an upload URL is used once, and a file exists from the commit that uses it. */
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

/** Returns the file uploaded with this URL; `null` if there is none or it was deleted. */
export const uploadedFile = internalQuery({
  args: { token: z.string() },
  handler: async (ctx, { token }): Promise<{ id: string; size: number } | null> => {
    const used = await ctx.db.query("_uploads").withIndex("by_token", (q) => q.eq("token", token)).first();
    const file = used === null ? null : await ctx.db.get(used.file);
    return file === null ? null : { id: file._id, size: file.size };
  },
});

/**
 * Inserts a file's document and marks its upload URL as used; `token` is `null` for files stored by actions. Repeating the
 * call with the same blob and URL returns the same file, so callers can retry after a lost response.
 */
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

/** Reserves IDs for imported files without storing anything. */
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

/** Inserts the documents of imported files, whose blobs are already stored. */
export const importFiles = internalMutation({
  args: {
    files: z.array(z.strictObject({ ...newFileShape, _id: z.string(), _creationTime: z.number() })),
  },
  handler: (ctx, { files }): void => {
    for (const file of files) importerOf(ctx).store("_storage", file, "insert");
  },
});

/** System functions have an import API that the public `ctx` type does not declare. */
function importerOf(ctx: object): ImportApi {
  return (ctx as { readonly importer: ImportApi }).importer;
}
