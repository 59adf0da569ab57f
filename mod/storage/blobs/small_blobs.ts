/** Contents of small files and thumbnails in bounded memory: opening one costs many times what answering with it does. */
import { storageLimits } from "../limits.ts";
import type { BlobStore } from "./blob_store.ts";
import type { StoredFile } from "../stored_file.ts";

export class SmallBlobs {
  readonly #store: BlobStore;
  /**
   * By blob, or by blob and variant, in order of last use. Neither ever changes; those of a file that was deleted are asked for
   * by nobody.
   */
  readonly #kept = new Map<string, Uint8Array<ArrayBuffer>>();
  #bytes = 0;

  constructor(store: BlobStore) {
    this.#store = store;
  }

  /** The contents of a file if they are in memory. */
  kept({ blob }: StoredFile): Uint8Array<ArrayBuffer> | null {
    return this.#use(blob);
  }

  /** A thumbnail of a file if it is in memory. */
  keptVariant({ blob }: StoredFile, variant: string): Uint8Array<ArrayBuffer> | null {
    return this.#use(variantKey(blob, variant));
  }

  /** Keeps a thumbnail, unless it is large. */
  keepVariant({ blob }: StoredFile, variant: string, bytes: Uint8Array<ArrayBuffer>): void {
    if (bytes.length <= storageLimits.thumbnailKeptBytesMax) this.#keep(variantKey(blob, variant), bytes);
  }

  #use(key: string): Uint8Array<ArrayBuffer> | null {
    const bytes = this.#kept.get(key);
    if (bytes === undefined) return null;
    this.#kept.delete(key);
    this.#kept.set(key, bytes);
    return bytes;
  }

  /** The contents of a file: bytes when it is small, else a stream; `null` when the blob is gone. */
  async open(
    file: StoredFile,
  ): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null> {
    const stream = await this.#store.read(file.blob, null);
    if (stream === null || file.size > storageLimits.smallFileBytesMax) return stream;
    const bytes = await new Response(stream).bytes();
    this.#keep(file.blob, bytes);
    return bytes;
  }

  #keep(key: string, bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes += bytes.length - (this.#kept.get(key)?.length ?? 0);
    this.#kept.delete(key);
    this.#kept.set(key, bytes);
    for (const [oldest, { length }] of this.#kept) {
      const full = this.#bytes > storageLimits.smallFilesKeptBytes ||
        this.#kept.size > storageLimits.cachedFilesMax;
      if (!full) return;
      this.#kept.delete(oldest);
      this.#bytes -= length;
    }
  }
}

function variantKey(blob: string, variant: string): string {
  return `${blob}.${variant}`;
}
