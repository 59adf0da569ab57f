/** Blob store in an S3 bucket: `blobs/<name>`, and derivatives as `derived/<name>/<derivative>`, below a prefix. */
import { Bucket, type BucketLocation } from "../../kit/locations/bucket.ts";
import type { ByteRange } from "../../kit/byte_range.ts";
import { removeIfThere, statIfThere } from "../../kit/durable_files.ts";
import { storageLimits } from "../limits.ts";
import type { BlobStore, BlobWriter, ListedBlob } from "./blob_store.ts";

export class S3Blobs implements BlobStore {
  readonly #bucket: Bucket;

  private constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  /** Connects to a bucket and aborts multipart uploads left by an earlier server. Throws if the bucket is not usable. */
  static async open(
    place: BucketLocation,
    { readOnly = false, shared = false, later, now = Date.now }: {
      /** Whether another server writes to the bucket and owns its unfinished uploads. */
      readonly readOnly?: boolean;
      /** Whether another server may still be uploading: only old unfinished uploads are aborted. */
      readonly shared?: boolean;
      /** If set, the bucket may be unreachable at first; called with the error. */
      readonly later?: ((error: unknown) => void) | undefined;
      readonly now?: () => number;
    } = {},
  ): Promise<S3Blobs> {
    const bucket = new Bucket(place);
    const before = now() - storageLimits.s3UnfinishedKeepMs;
    const end = () =>
      bucket.abortUnfinishedUploads(
        "blobs/",
        (_, begunAt) => !shared || begunAt !== null && begunAt < before,
      );
    if (later !== undefined) {
      if (!readOnly) end().catch(later);
      return new S3Blobs(bucket);
    }
    try {
      await (readOnly ? bucket.size(keyOf("none")) : end());
    } catch (error) {
      bucket[Symbol.dispose]();
      throw error;
    }
    return new S3Blobs(bucket);
  }

  create(name: string): Promise<BlobWriter> {
    return Promise.resolve(this.#bucket.writer(keyOf(name), { partBytes: storageLimits.s3PartBytes }));
  }

  async adopt(name: string, path: string): Promise<void> {
    if (await statIfThere(path) === null) return;
    using file = await Deno.open(path);
    const writer = await this.create(name);
    try {
      for await (const chunk of file.readable) await writer.write(chunk);
      await writer.commit();
    } catch (error) {
      await writer.abort();
      throw error;
    }
    await removeIfThere(path);
  }

  async read(
    name: string,
    part: ByteRange | null,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null> {
    return (await this.#bucket.read(keyOf(name), { part }))?.body ?? null;
  }

  async remove(name: string): Promise<void> {
    for await (const derivative of this.#bucket.list(`derived/${name}/`)) {
      await this.#bucket.remove(derivative.name);
    }
    await this.#bucket.remove(keyOf(name));
  }

  async *list(): AsyncIterable<ListedBlob> {
    for await (const { name, writtenAt } of this.#bucket.list("blobs/")) {
      yield { name: name.slice("blobs/".length), writtenAt };
    }
    let previous = "";
    for await (const derivative of this.#bucket.list("derived/")) {
      const [, name = ""] = derivative.name.split("/");
      if (name !== previous) yield { name, writtenAt: derivative.writtenAt };
      previous = name;
    }
  }

  async readDerivative(name: string, derivative: string): Promise<Uint8Array<ArrayBuffer> | null> {
    const found = await this.#bucket.read(derivedKeyOf(name, derivative));
    return found === null ? null : await new Response(found.body).bytes();
  }

  async writeDerivative(
    name: string,
    derivative: string,
    bytes: Uint8Array<ArrayBuffer>,
  ): Promise<void> {
    await this.#bucket.put(derivedKeyOf(name, derivative), bytes);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#bucket[Symbol.dispose]();
    return Promise.resolve();
  }
}

function keyOf(name: string): string {
  return `blobs/${name}`;
}

function derivedKeyOf(name: string, derivative: string): string {
  return `derived/${name}/${derivative}`;
}
