/** Objects in a folder or under a prefix of an S3 bucket. Both implementations pass one contract test suite. */
import type { ByteRange } from "../http_request.ts";

export interface BucketLocation {
  readonly bucket: string;
  /** Prefix of all keys; ends in a slash unless it is empty. */
  readonly prefix: string;
  readonly region: string;
  /** `null` is the AWS endpoint of the region. Other services are addressed with the bucket in the path. */
  readonly endpoint: string | null;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export type ObjectLocation =
  | { readonly kind: "folder"; /** Absolute. */ readonly path: string }
  | { readonly kind: "bucket"; readonly bucket: BucketLocation };

export interface ObjectInfo {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly writtenAt: number;
}

export type ObjectBody = ReadableStream<Uint8Array<ArrayBuffer>>;

/** Writes one object. End it with `commit` or `abort`. */
export interface ObjectWriter {
  /** Writes the next bytes; resolves when more can be accepted. Do not modify the chunk until then. One call at a time. */
  write(chunk: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Makes the complete, durable object visible under its name. */
  commit(): Promise<void>;
  /** Discards the object. Leftovers are removed by `removeUnfinished`. Never rejects. */
  abort(): Promise<void>;
}

/** Reads objects. Names have slashes between their parts. Failures are {@linkcode LocationError}s. */
export interface ObjectReader {
  /** Display name. */
  readonly location: string;
  /** Lists the objects whose names begin with a prefix, in any order. */
  list(prefix: string): AsyncIterable<ObjectInfo>;
  head(name: string): Promise<ObjectInfo | null>;
  /** Returns the contents, `null` if missing. The stream fails with {@linkcode ObjectLostError} if it is replaced. */
  get(name: string, range?: ByteRange | null): Promise<ObjectBody | null>;
}

export interface ObjectStore extends ObjectReader, AsyncDisposable {
  readonly kind: ObjectLocation["kind"];
  /** Starts an object. It is not visible until committed. */
  create(name: string): Promise<ObjectWriter>;
  /** Writes a small object durably. With `ifAbsent`, at most one of concurrent calls returns `true`. */
  put(name: string, bytes: Uint8Array<ArrayBuffer>, options?: PutOptions): Promise<boolean>;
  /** Stores a file of any size. With `move`, the file, whose contents are synced, is removed. */
  putFile(name: string, path: string, options?: { readonly move?: boolean }): Promise<void>;
  delete(...names: readonly string[]): Promise<void>;
  /** Deletes all objects in a folder, `prefix/`. */
  deleteFolder(prefix: string): Promise<void>;
  /** Throws unless objects can be listed and written. Leaves nothing behind. */
  check(): Promise<void>;
  /** Removes leftovers of interrupted writes, boundedly. `before`: known to be older, in ms since the epoch. */
  removeUnfinished(
    prefix: string,
    options?: { readonly before?: number; readonly chosen?: (name: string) => boolean },
  ): Promise<void>;
}

export interface PutOptions {
  readonly ifAbsent?: boolean;
  /** Whether a crash may lose the object, which is written faster then. */
  readonly volatile?: boolean;
}

/**
 * `refused`: the location denies access. `away`: it cannot be reached or used at present. `target`: its contents are not as
 * expected. `asked`: it does not have what was requested.
 */
export type LocationFault = "refused" | "away" | "target" | "asked";

/** A location cannot be used. */
export class LocationError extends Error {
  override readonly name = "LocationError";
  readonly fault: LocationFault;

  constructor(fault: LocationFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}

/** An object was removed or replaced while it was read. */
export class ObjectLostError extends LocationError {
  readonly reason: "gone" | "changed";

  constructor(name: string, reason: "gone" | "changed") {
    super("away", `"${name}" was ${reason === "gone" ? "deleted" : "replaced"} while it was read`);
    this.reason = reason;
  }
}

export interface StoreOptions {
  /** Whether a missing folder is created (mode 0700). */
  readonly make?: boolean;
  /** Folder of temporary files, below the location's. Otherwise they are hidden files in the location's. */
  readonly temporaryFolder?: string;
  /** Disk space kept free when a file is copied into a folder. */
  readonly reserveBytes?: number;
  /** Aborts operations in flight. */
  readonly signal?: AbortSignal;
  /** Timeout of a request to a bucket, including its retries. */
  readonly requestMs?: number;
  /** Attempts for a request to a bucket that gets no answer or `503`. */
  readonly attempts?: number;
  /** Part size of uploads to a bucket, held in memory. Larger files have larger parts. */
  readonly partBytes?: number;
}

export function locationText(location: ObjectLocation): string {
  return location.kind === "folder"
    ? location.path
    : `s3://${location.bucket.bucket}/${location.bucket.prefix}`;
}

/** Reads an object into memory; `null` if there is no such object. Throws a `LocationError` above `bytesMax`. */
export async function readObject(
  store: Pick<ObjectReader, "get">,
  name: string,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const body = await store.get(name);
  if (body === null) return null;
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      size += chunk.length;
      if (size > bytesMax) {
        throw new LocationError("target", `"${name}" is larger than ${bytesMax} bytes: it is damaged`);
      }
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof ObjectLostError && error.reason === "gone") return null;
    throw error;
  }
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : await new Blob(chunks).bytes();
}
