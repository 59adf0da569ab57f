/** Files as main sees them: facts of one, and what is to be removed. */
import { z } from "zod";
import { storageLimits } from "../limits.ts";
import { type StoredFile, storedFile } from "../stored_file.ts";
import { internalMutation, internalQuery } from "../tables.ts";

/** The file with this id; `null` for texts that are not the id of one. */
export const findFile = internalQuery({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<StoredFile | null> => {
    const own = ctx.db.normalizeId("_storage", id);
    const doc = own === null ? null : await ctx.db.get(own);
    return doc === null ? null : storedFile(doc);
  },
});

/** Blobs of files deleted until `before`, the longest deleted first. */
export const deletedBlobs = internalQuery({
  args: { before: z.number() },
  handler: async (ctx, { before }): Promise<{ id: string; blob: string }[]> => {
    const rows = await ctx.db.query("_deleted_blobs")
      .withIndex("by_deletion", (q) => q.lte("deletedAt", before)).take(storageLimits.removedAtOnceMax);
    return rows.map(({ _id, blob }) => ({ id: _id, blob }));
  },
});

/** Forgets deleted blobs that were removed. */
export const forgetDeletedBlobs = internalMutation({
  args: { ids: z.array(z.string()) },
  handler: async (ctx, { ids }): Promise<void> => {
    for (const id of ids) {
      const own = ctx.db.normalizeId("_deleted_blobs", id);
      if (own !== null && await ctx.db.get(own) !== null) await ctx.db.delete(own);
    }
  },
});

/** Those of the blobs that no file has and that no deletion names. */
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

/** Forgets upload URLs used until `before`. Returns whether there may be more. */
export const forgetUsedUploads = internalMutation({
  args: { before: z.number() },
  handler: async (ctx, { before }): Promise<boolean> => {
    const rows = await ctx.db.query("_uploads")
      .withIndex("by_use", (q) => q.lte("usedAt", before)).take(storageLimits.removedAtOnceMax);
    for (const { _id } of rows) await ctx.db.delete(_id);
    return rows.length === storageLimits.removedAtOnceMax;
  },
});
