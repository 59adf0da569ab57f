/** Where the contents of files lie: the port that the local folder and S3 implement, with one suite of tests for both. */
import type { ByteRange } from "../../kit/byte_range.ts";

/** A blob on its way into a store. One of `commit` and `abort` ends it. */
export interface BlobWriter {
  /** Takes the next bytes; resolves when there is room for more. The chunk is the writer's until then. One call at a time. */
  write(chunk: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Makes the blob appear under its name, whole and durable. */
  commit(): Promise<void>;
  /** Leaves nothing behind. Never rejects. */
  abort(): Promise<void>;
}

/** A blob as a listing tells of it. */
export interface ListedBlob {
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly writtenAt: number;
}

/**
 * Blobs by name: 32 hexadecimal digits. Small files made of a blob (thumbnails) are its derivatives: they go when it goes,
 * may be lost at any time, and can be made again.
 */
export interface BlobStore extends AsyncDisposable {
  /** Begins a new blob. Nothing of it can be read before it is committed. */
  create(name: string): Promise<BlobWriter>;
  /**
   * Makes a blob of a file on this machine whose contents are on disk; the file is gone then. A file that is gone already
   * was adopted before.
   */
  adopt(name: string, path: string): Promise<void>;
  /** The bytes of a blob, or of a part that lies inside it; `null` when there is no such blob. */
  read(name: string, part: ByteRange | null): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null>;
  /** Removes a blob with its derivatives; there may be none. */
  remove(name: string): Promise<void>;
  /** Names of all blobs, and of those of which only derivatives are left. */
  list(): AsyncIterable<ListedBlob>;
  readDerivative(name: string, derivative: string): Promise<Uint8Array<ArrayBuffer> | null>;
  writeDerivative(name: string, derivative: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
}
