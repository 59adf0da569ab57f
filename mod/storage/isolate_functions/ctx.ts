/** What stands behind `ctx.storage` in queries and mutations; actions call it too. */
import { z } from "zod";
import { fileApiLimits } from "../../functions/limits.ts";
import {
  internalMutation,
  internalQuery,
  type StorageDoc,
  type StorageMutationCtx,
  type StorageQueryCtx,
} from "../tables.ts";
import { storageUrls } from "./settings.ts";

/** Facts of a file that app code is told. */
export interface FileMetadata {
  readonly _id: string;
  /** Milliseconds since the epoch. */
  readonly _creationTime: number;
  readonly contentType: string | null;
  readonly name: string | null;
  /** Of the contents, in hexadecimal. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
  /** Id of the user or administrator who generated the upload URL; `null` for nobody. */
  readonly createdBy: string | null;
}

async function findDoc(ctx: StorageQueryCtx, id: string): Promise<StorageDoc<"_storage"> | null> {
  const own = ctx.db.normalizeId("_storage", id);
  return own === null ? null : await ctx.db.get(own);
}

/** A URL that takes one upload within the hour. */
export const generateUploadUrl = internalMutation({
  args: {},
  handler: (ctx: StorageMutationCtx): string => {
    const { signer, baseUrl } = storageUrls();
    const createdBy = ctx.auth.userId() ?? ctx.auth.adminId();
    const token = signer.uploadToken({ createdAt: Date.now(), createdBy });
    return `${baseUrl}/api/storage/upload?token=${token}`;
  },
});

/** The URL of a file, which never changes; `null` when there is no such file. */
export const url = internalQuery({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<string | null> => {
    const doc = await findDoc(ctx, id);
    return doc === null ? null : `${storageUrls().baseUrl}/api/storage/${doc._id}`;
  },
});

/** A URL of a file that can be used for `ttlSeconds`; `null` when there is no such file. */
export const signedUrl = internalQuery({
  args: { id: z.string(), ttlSeconds: z.number().positive().max(fileApiLimits.signedUrlSecondsMax) },
  handler: async (ctx, { id, ttlSeconds }): Promise<string | null> => {
    const doc = await findDoc(ctx, id);
    if (doc === null) return null;
    const { signer, baseUrl } = storageUrls();
    const exp = Math.floor(Date.now() / 1000 + ttlSeconds);
    return `${baseUrl}/api/storage/${doc._id}?exp=${exp}&sig=${signer.readSignature(doc._id, exp)}`;
  },
});

/** Facts of a file; `null` when there is no such file. */
export const metadata = internalQuery({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<FileMetadata | null> => {
    const doc = await findDoc(ctx, id);
    if (doc === null) return null;
    const { _id, _creationTime, sha256, size } = doc;
    return {
      _id,
      _creationTime,
      contentType: doc.contentType ?? null,
      name: doc.name ?? null,
      sha256,
      size,
      createdBy: doc.createdBy ?? null,
    };
  },
});

/** Deletes a file. Its contents are removed after the commit. */
export const deleteFile = internalMutation({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<void> => {
    const doc = await findDoc(ctx, id);
    if (doc === null) throw new TypeError(`There is no file "${id}" to delete`);
    await ctx.db.delete(doc._id);
    await ctx.db.insert("_deleted_blobs", { blob: doc.blob, deletedAt: Date.now() });
  },
});
