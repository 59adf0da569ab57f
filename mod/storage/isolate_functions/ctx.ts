/** Implements `ctx.storage` of queries and mutations; actions call these functions too. */
import { z } from "zod";
import { fileApiLimits } from "../../functions/limits.ts";
import {
  internalMutation,
  internalQuery,
  type StorageDoc,
  type StorageMutationCtx,
  type StorageQueryCtx,
} from "../tables.ts";
import { UrlSigner } from "../url_signer.ts";

/** File metadata as app code sees it. */
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
  /** ID of the user or administrator who generated the upload URL; `null` if signed out. */
  readonly createdBy: string | null;
}

async function findDoc(ctx: StorageQueryCtx, id: string): Promise<StorageDoc<"_storage"> | null> {
  const own = ctx.db.normalizeId("_storage", id);
  return own === null ? null : await ctx.db.get(own);
}

export const generateUploadUrl = internalMutation({
  args: {},
  handler: (ctx: StorageMutationCtx): string => {
    const { signer, baseUrl } = storageUrls();
    const createdBy = ctx.auth.userId() ?? ctx.auth.adminId();
    const token = signer.uploadToken({ createdAt: Date.now(), createdBy });
    return `${baseUrl}/api/storage/upload?token=${token}`;
  },
});

/** Returns the permanent URL of a file, or `null` if it does not exist. */
export const url = internalQuery({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<string | null> => {
    const doc = await findDoc(ctx, id);
    return doc === null ? null : `${storageUrls().baseUrl}/api/storage/${doc._id}`;
  },
});

/** Returns a URL valid for `ttlSeconds`, or `null` if the file does not exist. */
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

/** Returns the metadata of a file, or `null` if it does not exist. */
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
    if (doc === null) throw new TypeError(`Cannot delete file "${id}": not found`);
    await ctx.db.delete(doc._id);
    await ctx.db.insert("_deleted_blobs", { blob: doc.blob, deletedAt: Date.now() });
  },
});

/** Passed to each isolate when it starts. */
const storageSettings = z.strictObject({
  /** Key of URL signatures, base64url. */
  urlKey: z.string(),
  /** Prefix of URLs without a trailing slash; empty for URLs relative to the server. */
  baseUrl: z.string(),
});

export type StorageSettings = z.infer<typeof storageSettings>;

interface Urls {
  readonly signer: UrlSigner;
  readonly baseUrl: string;
}

let urls: Urls | null = null;

/** Called once in each isolate, before any function runs. */
export function configureStorage(settings: unknown): void {
  const { urlKey, baseUrl } = storageSettings.parse(settings);
  urls = { signer: new UrlSigner(Uint8Array.fromBase64(urlKey, { alphabet: "base64url" })), baseUrl };
}

/** Throws if the isolate has no storage settings. */
function storageUrls(): Urls {
  if (urls === null) throw new Error("File storage is not available on this server");
  return urls;
}
