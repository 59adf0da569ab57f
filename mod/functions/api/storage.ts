/** `ctx.storage` as authors see it. Types only. */
import type { Id } from "./values.ts";

/** What is known of a stored file. */
export interface FileMetadata {
  readonly _id: Id<"_storage">;
  /** Milliseconds since the epoch. */
  readonly _creationTime: number;
  /** As it was uploaded; `null` when nothing was said. */
  readonly contentType: string | null;
  /** The original file name, without folders. */
  readonly name: string | null;
  /** Of the contents, in hexadecimal. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
  /** Id of the user or administrator who generated the upload URL; `null` for nobody. */
  readonly createdBy: string | null;
}

/** Reads what is known of files. URLs are relative to the server unless it was started with `--public-url`. */
export interface StorageReader {
  /** The URL of a file, which never changes and which anyone who holds it can read; `null` when there is no such file. */
  getUrl(id: string): Promise<string | null>;
  /** A URL that works for `ttlSeconds`, an hour unless told; `null` when there is no such file. */
  getSignedUrl(id: string, options?: { readonly ttlSeconds?: number }): Promise<string | null>;
  /** `null` when there is no such file. */
  getMetadata(id: string): Promise<FileMetadata | null>;
}

/** Writes are part of the mutation's transaction; in an action, each is a transaction of its own. */
export interface StorageWriter extends StorageReader {
  /** A URL to which one file can be posted within the hour. */
  generateUploadUrl(): Promise<string>;
  /** Deletes a file; its contents are removed after the commit. Throws when there is no such file. */
  delete(id: string): Promise<void>;
}

/** Actions also handle the contents of files. */
export interface StorageActions extends StorageWriter {
  /** Stores a file and gives back its id. The content type is the blob's unless told. */
  store(
    contents: Blob,
    options?: { readonly name?: string; readonly contentType?: string },
  ): Promise<Id<"_storage">>;
  /** The contents of a file, with its content type; `null` when there is no such file. */
  get(id: string): Promise<Blob | null>;
}
