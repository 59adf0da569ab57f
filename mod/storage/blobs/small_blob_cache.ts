/** Bounded memory cache of small files and thumbnails. Opening a file costs many times more than sending a cached one. */
import { storageLimits } from "../limits.ts";
import type { BlobStore } from "./blob_store.ts";
import type { StoredFile } from "../stored_file.ts";

export class SmallBlobCache {
  readonly #store: BlobStore;
  /**
   * By blob, or blob and variant, in LRU order. Entries are immutable, and those of deleted files are never requested again.
   */
  readonly #cache = new Map<string, Uint8Array<ArrayBuffer>>();
  #bytes = 0;

  constructor(store: BlobStore) {
    this.#store = store;
  }

  /** Returns the contents of a file if cached. */
  cached({ blob }: StoredFile): Uint8Array<ArrayBuffer> | null {
    return this.#use(blob);
  }

  /** Returns a thumbnail if cached. */
  cachedVariant({ blob }: StoredFile, variant: string): Uint8Array<ArrayBuffer> | null {
    return this.#use(variantKey(blob, variant));
  }

  /** Caches a thumbnail, unless it is too large. */
  cacheVariant({ blob }: StoredFile, variant: string, bytes: Uint8Array<ArrayBuffer>): void {
    if (bytes.length <= storageLimits.thumbnailKeptBytesMax) this.#insert(variantKey(blob, variant), bytes);
  }

  #use(key: string): Uint8Array<ArrayBuffer> | null {
    const bytes = this.#cache.get(key);
    if (bytes === undefined) return null;
    this.#cache.delete(key);
    this.#cache.set(key, bytes);
    return bytes;
  }

  /** Opens a file: bytes if it is small, otherwise a stream; `null` if the blob does not exist. */
  async open(
    file: StoredFile,
  ): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null> {
    const stream = await this.#store.read(file.blob, null);
    if (stream === null || file.size > storageLimits.smallFileBytesMax) return stream;
    const bytes = await new Response(stream).bytes();
    this.#insert(file.blob, bytes);
    return bytes;
  }

  #insert(key: string, bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes += bytes.length - (this.#cache.get(key)?.length ?? 0);
    this.#cache.delete(key);
    this.#cache.set(key, bytes);
    for (const [oldest, { length }] of this.#cache) {
      const full = this.#bytes > storageLimits.smallFilesKeptBytes ||
        this.#cache.size > storageLimits.cachedFilesMax;
      if (!full) return;
      this.#cache.delete(oldest);
      this.#bytes -= length;
    }
  }
}

function variantKey(blob: string, variant: string): string {
  return `${blob}.${variant}`;
}
