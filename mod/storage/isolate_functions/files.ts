/** System functions that the main process calls: uploads, file metadata and cleanup. */
import { z } from "zod";
import { storageLimits } from "../limits.ts";
import { type StoredFile, storedFile } from "../stored_file.ts";
import { internalMutation, internalQuery, newFileShape } from "../tables.ts";
import { UserError } from "../../errors.ts";
import type { ImportApi } from "../../functions/isolate/mod.ts";

/** Returns the file with this ID, or `null` (also for strings that are not an ID). */
export const findFile = internalQuery({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<StoredFile | null> => {
    const own = ctx.db.normalizeId("_storage", id);
    const doc = own === null ? null : await ctx.db.get(own);
    return doc === null ? null : storedFile(doc);
  },
});

/** Returns blobs of files deleted before `before`, oldest deletion first. */
export const deletedBlobs = internalQuery({
  args: { before: z.number() },
  handler: async (ctx, { before }): Promise<{ id: string; blob: string }[]> => {
    const rows = await ctx.db.query("_deleted_blobs")
      .withIndex("by_deletion", (q) => q.lte("deletedAt", before)).take(storageLimits.removedAtOnceMax);
    return rows.map(({ _id, blob }) => ({ id: _id, blob }));
  },
});

export const forgetDeletedBlobs = internalMutation({
  args: { ids: z.array(z.string()) },
  handler: async (ctx, { ids }): Promise<void> => {
    for (const id of ids) {
      const own = ctx.db.normalizeId("_deleted_blobs", id);
      if (own !== null && await ctx.db.get(own) !== null) await ctx.db.delete(own);
    }
  },
});

/** Returns those of the blobs that neither a file nor a pending deletion references. */
export const orphansAmong = internalQuery({
  args: { blobs: z.array(z.string()) },
  handler: async (ctx, { blobs }): Promise<string[]> => {
    const orphans: string[] = [];
    for (const blob of blobs) {
      const file = await ctx.db.query("_storage").withIndex("by_blob", (q) => q.eq("blob", blob)).first();
      if (file !== null) continue;
      const deleted = await ctx.db.query("_deleted_blobs").withIndex("by_blob", (q) => q.eq("blob", blob))
        .first();
      if (deleted === null) orphans.push(blob);
    }
    return orphans;
  },
});

/** Deletes rows of upload URLs used before `before`. Returns whether there may be more. */
export const forgetUsedUploads = internalMutation({
  args: { before: z.number() },
  handler: async (ctx, { before }): Promise<boolean> => {
    const rows = await ctx.db.query("_uploads")
      .withIndex("by_use", (q) => q.lte("usedAt", before)).take(storageLimits.removedAtOnceMax);
    for (const { _id } of rows) await ctx.db.delete(_id);
    return rows.length === storageLimits.removedAtOnceMax;
  },
});

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

/** Inserts a file's document and marks its upload URL (`token`) as used. Idempotent for the same blob and URL. */
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
