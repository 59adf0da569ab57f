/** System functions that the main process calls: file metadata and cleanup. */
import { z } from "zod";
import { storageLimits } from "../limits.ts";
import { type StoredFile, storedFile } from "../stored_file.ts";
import { internalMutation, internalQuery } from "../tables.ts";

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

/** Deletes rows of removed blobs. */
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
