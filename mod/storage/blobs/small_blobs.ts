/** Contents of small files in bounded memory: opening one costs many times what answering with it does. */
import { storageLimits } from "../limits.ts";
import type { BlobStore } from "./blob_store.ts";
import type { StoredFile } from "../stored_file.ts";

export class SmallBlobs {
  readonly #store: BlobStore;
  /** By blob, in order of last use. A blob never changes; one whose file was deleted is asked for by nobody. */
  readonly #kept = new Map<string, Uint8Array<ArrayBuffer>>();
  #bytes = 0;

  constructor(store: BlobStore) {
    this.#store = store;
  }

  /** The contents of a file if they are in memory. */
  kept({ blob }: StoredFile): Uint8Array<ArrayBuffer> | null {
    const bytes = this.#kept.get(blob);
    if (bytes === undefined) return null;
    this.#kept.delete(blob);
    this.#kept.set(blob, bytes);
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

  #keep(blob: string, bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes += bytes.length - (this.#kept.get(blob)?.length ?? 0);
    this.#kept.set(blob, bytes);
    for (const [oldest, { length }] of this.#kept) {
      const full = this.#bytes > storageLimits.smallFilesKeptBytes ||
        this.#kept.size > storageLimits.cachedFilesMax;
      if (!full) return;
      this.#kept.delete(oldest);
      this.#bytes -= length;
    }
  }
}
