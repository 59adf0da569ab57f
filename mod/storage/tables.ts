/** Tables of file storage, accessible to app code through `ctx.storage` only. `blob` names the contents. */
import { z } from "zod";
import {
  createFunctions,
  createSystemFunctions,
  type DataModelOf,
  defineTable,
  type DocumentOf,
  id,
  type MutationCtx,
  type QueryCtx,
  type Schema,
} from "../functions/api/service.ts";

/** 128 random bits, in hexadecimal. */
export const blobName = z.string().regex(/^[0-9a-f]{32}$/);

/** Key of the storage settings passed to isolates. */
export const storageFeature = "storage";

const instant = z.number();

export const newFileShape = {
  blob: blobName,
  /** As given at upload. */
  contentType: z.string().optional(),
  /** Original file name without folders. */
  name: z.string().optional(),
  /** Of the contents, in hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Bytes. */
  size: z.int().min(0),
  /** ID of the user or administrator who generated the upload URL or ran the action that stored the file. */
  createdBy: z.string().optional(),
};

export const tables = {
  /** Stored files. Documents never change; deleting one deletes the file. */
  _storage: defineTable(newFileShape).index("by_blob", ["blob"]),

  /** Used upload URLs. */
  _uploads: defineTable({
    /** Random part of the URL's token. */
    token: z.string(),
    file: id("_storage"),
    usedAt: instant,
  }).index("by_token", ["token"]).index("by_use", ["usedAt"]),

  /** Blobs of deleted files that have not been removed yet. */
  _deleted_blobs: defineTable({
    blob: blobName,
    deletedAt: instant,
  }).index("by_blob", ["blob"]).index("by_deletion", ["deletedAt"]),
};

export type StorageModel = DataModelOf<Schema<typeof tables>>;
export type StorageDoc<Table extends keyof StorageModel & string> = DocumentOf<StorageModel, Table>;
export type StorageQueryCtx = QueryCtx<StorageModel>;
export type StorageMutationCtx = MutationCtx<StorageModel>;

/** Function builders typed with these tables. */
export const { internalQuery, internalMutation } = createFunctions(
  { tables } satisfies Schema<typeof tables>,
);

export const { adminQuery, adminMutation, systemQuery } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
