/** Thumbnails of stored images: made once, stored beside the image, removed with it. */
import { LRUCache } from "lru-cache";
import { isDiskFull } from "../../kit/durable_files.ts";
import { ServiceError, type ServiceErrorCode } from "../../errors.ts";
import { storageLimits } from "../limits.ts";
import type { BlobStore } from "../blobs/blob_store.ts";
import type { SmallBlobCache } from "../blobs/small_blob_cache.ts";
import { essenceOf, type StoredFile } from "../stored_file.ts";
import type { FileMetadataCache } from "../file_metadata_cache.ts";
import { imageTypeOf, type ThumbnailSpec, thumbnailTypes, variantOf } from "./spec.ts";
import type { ThumbnailMaker } from "./maker.ts";

export interface Thumbnail {
  readonly contentType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface ThumbnailsOptions {
  readonly store: BlobStore;
  readonly small: SmallBlobCache;
  readonly facts: FileMetadataCache;
  readonly maker: ThumbnailMaker;
  /** Whether contents of deleted files are retained for some time. */
  readonly keepsDeleted: boolean;
}

/** Permanent errors caused by the image itself. */
const permanentErrors: ReadonlySet<ServiceErrorCode> = new Set([
  "unsupported_image",
  "image_too_large",
  "invalid_image",
]);

export class Thumbnails {
  readonly #options: ThumbnailsOptions;
  /** Thumbnails in progress by blob and variant, shared by concurrent requests. */
  readonly #inFlight = new Map<string, Promise<Thumbnail>>();
  /** Blobs that no thumbnail can be made of, with the reason. */
  readonly #failed = new LRUCache<string, ServiceErrorCode>({ max: storageLimits.hopelessImagesMax });

  constructor(options: ThumbnailsOptions) {
    this.#options = options;
  }

  /** Throws `unsupported_image` and `image_too_large` if the metadata shows it. */
  check({ contentType, size }: StoredFile): void {
    if (!thumbnailTypes.has(essenceOf(contentType))) throw new ServiceError("unsupported_image");
    if (size > storageLimits.thumbnailSourceBytesMax) throw new ServiceError("image_too_large");
  }

  /** Returns the thumbnail of a checked file. Throws the contract's errors, and `not_found` if the contents are missing. */
  get(file: StoredFile, spec: ThumbnailSpec): Promise<Thumbnail> {
    const key = `${file.blob}.${variantOf(spec)}`;
    const running = this.#inFlight.get(key);
    if (running !== undefined) return running;
    const getting = this.#find(file, spec).finally(() => this.#inFlight.delete(key));
    this.#inFlight.set(key, getting);
    return getting;
  }

  async #find(file: StoredFile, spec: ThumbnailSpec): Promise<Thumbnail> {
    const { store, small } = this.#options;
    const variant = variantOf(spec);
    const bytes = small.cachedVariant(file, variant) ?? await store.readDerivative(file.blob, variant);
    // A thumbnail truncated by a crash is made again.
    const contentType = bytes === null ? null : imageTypeOf(bytes);
    if (bytes === null || contentType === null) return await this.#make(file, spec);
    small.cacheVariant(file, variant, bytes);
    return { contentType, bytes };
  }

  async #make(file: StoredFile, spec: ThumbnailSpec): Promise<Thumbnail> {
    const { store, facts, maker, keepsDeleted } = this.#options;
    const reason = this.#failed.get(file.blob);
    if (reason !== undefined) throw new ServiceError(reason);
    try {
      const bytes = await maker.make(() => this.#load(file), spec);
      const contentType = imageTypeOf(bytes);
      if (contentType === null) throw new ServiceError("invalid_image");
      await store.writeDerivative(file.blob, variantOf(spec), bytes).catch((error) => {
        // Serve it anyway on a full disk. It is made again for the next request.
        if (!isDiskFull(error)) throw error;
      });
      // The file was deleted in the meantime, so nothing else would remove the new thumbnail.
      if (!keepsDeleted && await facts.find(file.id) === null) await store.remove(file.blob);
      return { contentType, bytes };
    } catch (error) {
      if (error instanceof ServiceError && permanentErrors.has(error.code)) {
        this.#failed.set(file.blob, error.code);
      }
      throw error;
    }
  }

  async #load(file: StoredFile): Promise<Uint8Array<ArrayBuffer>> {
    const stream = await this.#options.store.read(file.blob, null);
    if (stream === null) throw new ServiceError("not_found");
    const bytes = await new Response(stream).bytes();
    if (imageTypeOf(bytes) === null) throw new ServiceError("unsupported_image");
    return bytes;
  }
}
