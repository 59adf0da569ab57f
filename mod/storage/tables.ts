/**
 * The tables of stored files. What a file holds lies in the blob store under the name in `blob`; a blob counts as stored
 * once a document here names it. App code reaches these tables through `ctx.storage` only.
 */
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
import { blobName } from "./blobs/blob_name.ts";

/** Instants are milliseconds since the epoch. */
const instant = z.number();

/** What is said of a file when it is stored. */
export const newFileShape = {
  blob: blobName,
  /** As it was uploaded; missing when nothing was said. */
  contentType: z.string().optional(),
  /** The original file name, without folders. */
  name: z.string().optional(),
  /** Of the contents, in hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Bytes. */
  size: z.int().min(0),
  /** Id of the user or administrator who generated the upload URL, or who ran the action that stored the file. */
  createdBy: z.string().optional(),
};

export const tables = {
  /** Stored files. A document never changes; deleting it deletes the file. */
  _storage: defineTable(newFileShape).index("by_blob", ["blob"]),

  /** Upload URLs that were used. */
  _uploads: defineTable({
    /** The random part of the URL's token. */
    token: z.string(),
    file: id("_storage"),
    usedAt: instant,
  }).index("by_token", ["token"]).index("by_use", ["usedAt"]),

  /** Blobs of deleted files that are still to be removed. */
  _deleted_blobs: defineTable({
    blob: blobName,
    deletedAt: instant,
  }).index("by_blob", ["blob"]).index("by_deletion", ["deletedAt"]),
};

export type StorageModel = DataModelOf<Schema<typeof tables>>;
export type StorageDoc<Table extends keyof StorageModel & string> = DocumentOf<StorageModel, Table>;
export type StorageQueryCtx = QueryCtx<StorageModel>;
export type StorageMutationCtx = MutationCtx<StorageModel>;

/** The function builders whose `ctx.db` knows these tables. */
export const { query, mutation, internalQuery, internalMutation } = createFunctions(
  { tables } satisfies Schema<typeof tables>,
);

/** The builders of what administrators call, and of what looks at all tables. */
export const { adminQuery, adminMutation, systemQuery } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
