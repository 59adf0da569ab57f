/** Types of `ctx.storage` and `ctx.streams`. */
import type { Id } from "./values.ts";

/** Metadata of a stored file. */
export interface FileMetadata {
  readonly _id: Id<"_storage">;
  /** Milliseconds since the epoch. */
  readonly _creationTime: number;
  /** Content type as uploaded; `null` if absent. */
  readonly contentType: string | null;
  /** Original file name, without folders. */
  readonly name: string | null;
  /** SHA-256 of the contents, hexadecimal. */
  readonly sha256: string;
  /** Size in bytes. */
  readonly size: number;
  /** Id of the user or administrator who generated the upload URL; `null` for anonymous callers. */
  readonly createdBy: string | null;
}

/** Reads file metadata. URLs are relative unless the server has a `--public-url`. */
export interface StorageReader {
  /** Returns the permanent URL of a file, which anyone can read; `null` if the file does not exist. */
  getUrl(id: string): Promise<string | null>;
  /** Returns a URL valid for `ttlSeconds`, one hour by default; `null` if the file does not exist. */
  getSignedUrl(id: string, options?: { readonly ttlSeconds?: number }): Promise<string | null>;
  /** Returns the metadata; `null` if the file does not exist. */
  getMetadata(id: string): Promise<FileMetadata | null>;
}

/** In a mutation, writes are part of its transaction; in an action, each is its own transaction. */
export interface StorageWriter extends StorageReader {
  /** Returns a URL for uploading one file within an hour. */
  generateUploadUrl(): Promise<string>;
  /** Deletes a file; its contents are removed after the commit. Throws if the file does not exist. */
  delete(id: string): Promise<void>;
}

/** Actions can also read and write file contents. */
export interface StorageActions extends StorageWriter {
  /** Stores a file and returns its id. Default content type: that of the blob. */
  store(
    contents: Blob,
    options?: { readonly name?: string; readonly contentType?: string },
  ): Promise<Id<"_storage">>;
  /** Returns the contents with the content type; `null` if the file does not exist. */
  get(id: string): Promise<Blob | null>;
}

export interface StreamOptions {
  /** Default: `text/plain; charset=utf-8`. */
  readonly contentType?: string;
  /** Name of the stored file. */
  readonly name?: string;
  /** Whether the content is stored as a file when the stream ends. Default: true. */
  readonly store?: boolean;
}

/** Writes one stream. If the action ends before the stream, readers receive an error. */
export interface StreamWriter {
  /** Unguessable: each client that has it can read the stream. Store it in a document that the readers may see. */
  readonly id: string;
  /** Appends a chunk, which readers receive at once. At most 8 MiB in all. */
  write(chunk: string | Uint8Array): Promise<void>;
  /** Stores the content, then ends the stream. Returns the id of the file; `null` with `store: false`. */
  end(): Promise<Id<"_storage"> | null>;
  /** Ends the stream with an error. Nothing is stored. */
  fail(): Promise<void>;
}

/** Output that clients read while it is written. */
export interface Streams {
  /**
   * Creates a stream.
   *
   * @example
   * ```ts
   * const stream = await ctx.streams.create();
   * await ctx.runMutation(internal.answers.begin, { question, stream: stream.id });
   * for await (const word of model.answer(text)) await stream.write(word);
   * await ctx.runMutation(internal.answers.finish, { question, file: await stream.end() });
   * ```
   */
  create(options?: StreamOptions): Promise<StreamWriter>;
}
