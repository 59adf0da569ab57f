/** Port of the blob stores (folder, S3). Both implementations pass one contract test suite. */
import type { ByteRange } from "../../kit/byte_range.ts";

/** Writes one blob. End it with `commit` or `abort`. */
export interface BlobWriter {
  /** Writes the next bytes; resolves when more can be accepted. Do not modify the chunk until then. One call at a time. */
  write(chunk: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Makes the blob readable under its name, complete and durable. */
  commit(): Promise<void>;
  /** Discards the blob. Never rejects. */
  abort(): Promise<void>;
}

/** A blob in a listing. */
export interface ListedBlob {
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly writtenAt: number;
}

/**
 * Stores blobs by name (32 hexadecimal digits). Derivatives are small files made from a blob, such as thumbnails. They are
 * removed with the blob, may be lost at any time, and can be re-created.
 */
export interface BlobStore extends AsyncDisposable {
  /** Starts a new blob. It is not readable until committed. */
  create(name: string): Promise<BlobWriter>;
  /**
   * Moves a local file, whose contents are synced, into the store. Succeeds if the file was already adopted by an earlier
   * call.
   */
  adopt(name: string, path: string): Promise<void>;
  /** Returns the contents of a blob or of a range inside it; `null` if the blob does not exist. */
  read(name: string, part: ByteRange | null): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null>;
  /** Removes a blob, if it exists, and its derivatives. */
  remove(name: string): Promise<void>;
  /** Lists all blobs, including names that only have derivatives left. */
  list(): AsyncIterable<ListedBlob>;
  readDerivative(name: string, derivative: string): Promise<Uint8Array<ArrayBuffer> | null>;
  writeDerivative(name: string, derivative: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
}
