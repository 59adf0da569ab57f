/** Streams bytes into a new blob while counting and hashing. */
import { createHash, type Hash, randomBytes } from "node:crypto";
import { ServiceError } from "../../errors.ts";
import type { BlobStore, BlobWriter } from "../blobs/blob_store.ts";
import { chunksHeldMax } from "./request_chunks.ts";

export interface StoredBlob {
  readonly blob: string;
  /** Of the contents, in hexadecimal. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
}

export interface BlobIntakesOptions {
  readonly store: BlobStore;
  /** Maximum file size in bytes. */
  readonly bytesMax: number;
}

/** Creates blobs and tracks those that no document references yet. */
export class BlobIntakes {
  readonly #options: BlobIntakesOptions;
  /** Blobs of uploads in progress, which the orphan sweep must skip. */
  readonly #pending = new Set<string>();

  constructor(options: BlobIntakesOptions) {
    this.#options = options;
  }

  /** Starts a blob. Disposing of it discards an unfinished one. */
  async begin(): Promise<BlobIntake> {
    const { store, bytesMax } = this.#options;
    const blob = randomBytes(16).toString("hex");
    this.#pending.add(blob);
    try {
      const writer = await store.create(blob);
      return new BlobIntake({ blob, writer, bytesMax, onEnd: () => this.#pending.delete(blob) });
    } catch (error) {
      this.#pending.delete(blob);
      throw error;
    }
  }

  isPending(blob: string): boolean {
    return this.#pending.has(blob);
  }
}

export class BlobIntake implements AsyncDisposable {
  readonly #blob: string;
  readonly #writer: BlobWriter;
  readonly #bytesMax: number;
  readonly #onEnd: () => void;
  readonly #hash: Hash = createHash("sha256");
  /** Writes in flight, oldest first, while the next bytes are read and hashed. */
  readonly #writing: Promise<void>[] = [];
  #size = 0;
  #finished = false;

  constructor(options: {
    readonly blob: string;
    readonly writer: BlobWriter;
    readonly bytesMax: number;
    readonly onEnd: () => void;
  }) {
    this.#blob = options.blob;
    this.#writer = options.writer;
    this.#bytesMax = options.bytesMax;
    this.#onEnd = options.onEnd;
  }

  get size(): number {
    return this.#size;
  }

  /** Appends bytes; resolves when all but the newest `chunksHeldMax` chunks can be reused. Throws `file_too_large`. */
  async write(chunk: Uint8Array<ArrayBuffer>): Promise<void> {
    this.#size += chunk.length;
    if (this.#size > this.#bytesMax) throw fileTooLarge(this.#bytesMax);
    this.#hash.update(chunk);
    if (this.#writing.length === chunksHeldMax) await this.#writing.shift();
    const write = this.#writeAfter(this.#writing.at(-1), chunk);
    this.#writing.push(write);
    // A failure is thrown by the next write or by finish.
    write.catch(() => {});
  }

  /** Makes the blob durable. A document may reference it from now on. */
  async finish(): Promise<StoredBlob> {
    await this.#writing.at(-1);
    await this.#writer.commit();
    this.#finished = true;
    return { blob: this.#blob, sha256: this.#hash.digest("hex"), size: this.#size };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#writing);
    if (!this.#finished) await this.#writer.abort();
    this.#onEnd();
  }

  async #writeAfter(before: Promise<void> | undefined, chunk: Uint8Array<ArrayBuffer>): Promise<void> {
    await before;
    await this.#writer.write(chunk);
  }
}

export function fileTooLarge(bytesMax: number): ServiceError {
  return new ServiceError("file_too_large", `The file exceeds the limit of ${bytesMax} bytes`);
}
