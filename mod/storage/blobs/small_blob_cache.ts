/** Bounded memory cache of small files and thumbnails. Opening a file costs many times more than sending a cached one. */
import { LRUCache } from "lru-cache";
import { storageLimits } from "../limits.ts";
import type { BlobStore } from "./blob_store.ts";
import type { StoredFile } from "../stored_file.ts";

/** Every entry counts at least this much, which bounds their number. */
const ENTRY_BYTES_MIN = 1024;

export class SmallBlobCache {
  readonly #store: BlobStore;
  /** By blob, or blob and variant. Entries are immutable, and those of deleted files are never requested again. */
  readonly #cache = new LRUCache<string, Uint8Array<ArrayBuffer>>({
    maxSize: storageLimits.smallFilesKeptBytes,
    sizeCalculation: ({ length }) => Math.max(length, ENTRY_BYTES_MIN),
  });

  constructor(store: BlobStore) {
    this.#store = store;
  }

  cached({ blob }: StoredFile): Uint8Array<ArrayBuffer> | null {
    return this.#cache.get(blob) ?? null;
  }

  cachedVariant({ blob }: StoredFile, variant: string): Uint8Array<ArrayBuffer> | null {
    return this.#cache.get(variantKey(blob, variant)) ?? null;
  }

  /** Caches a thumbnail, unless it is too large. */
  cacheVariant({ blob }: StoredFile, variant: string, bytes: Uint8Array<ArrayBuffer>): void {
    if (bytes.length <= storageLimits.thumbnailKeptBytesMax) {
      this.#cache.set(variantKey(blob, variant), bytes);
    }
  }

  /** Opens a file: bytes if it is small, otherwise a stream; `null` if the blob does not exist. */
  async open(
    file: StoredFile,
  ): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null> {
    const stream = await this.#store.read(file.blob, null);
    if (stream === null || file.size > storageLimits.smallFileBytesMax) return stream;
    const bytes = await new Response(stream).bytes();
    this.#cache.set(file.blob, bytes);
    return bytes;
  }
}

function variantKey(blob: string, variant: string): string {
  return `${blob}.${variant}`;
}
