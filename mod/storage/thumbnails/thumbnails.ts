/** Thumbnails of stored images: made once, kept beside the image, gone with it. */
import { isDiskFull } from "../../kit/durable_files.ts";
import { ServiceError, type ServiceErrorCode } from "../../errors.ts";
import { storageLimits } from "../limits.ts";
import type { BlobStore } from "../blobs/blob_store.ts";
import type { SmallBlobs } from "../blobs/small_blobs.ts";
import { essenceOf } from "../content_type.ts";
import type { FileFacts } from "../file_facts.ts";
import type { StoredFile } from "../stored_file.ts";
import { imageTypeOf, thumbnailTypes } from "./image_type.ts";
import type { ThumbnailMaker } from "./maker.ts";
import { type ThumbnailSpec, variantOf } from "./spec.ts";

export interface Thumbnail {
  readonly contentType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface ThumbnailsOptions {
  readonly store: BlobStore;
  readonly small: SmallBlobs;
  readonly facts: FileFacts;
  readonly maker: ThumbnailMaker;
  /** Whether contents of deleted files stay for some time, with what was made of them. */
  readonly keepsDeleted: boolean;
}

/** What an image itself is to blame for; asking again would end the same way. */
const lasting: ReadonlySet<ServiceErrorCode> = new Set([
  "unsupported_image",
  "image_too_large",
  "invalid_image",
]);

export class Thumbnails {
  readonly #options: ThumbnailsOptions;
  /** Under way, by blob and variant: those who ask for the same wait for the same. */
  readonly #getting = new Map<string, Promise<Thumbnail>>();
  /** Blobs no thumbnail can be made of, with the reason, in order of last use. */
  readonly #hopeless = new Map<string, ServiceErrorCode>();

  constructor(options: ThumbnailsOptions) {
    this.#options = options;
  }

  /** Throws `unsupported_image` and `image_too_large` for what the file's document tells already. */
  check({ contentType, size }: StoredFile): void {
    if (!thumbnailTypes.has(essenceOf(contentType))) throw new ServiceError("unsupported_image");
    if (size > storageLimits.thumbnailSourceBytesMax) throw new ServiceError("image_too_large");
  }

  /** The thumbnail of a file that passed `check`. Throws the errors of the contract, and `not_found` for one without contents. */
  get(file: StoredFile, spec: ThumbnailSpec): Promise<Thumbnail> {
    const key = `${file.blob}.${variantOf(spec)}`;
    const running = this.#getting.get(key);
    if (running !== undefined) return running;
    const getting = this.#find(file, spec).finally(() => this.#getting.delete(key));
    this.#getting.set(key, getting);
    return getting;
  }

  async #find(file: StoredFile, spec: ThumbnailSpec): Promise<Thumbnail> {
    const { store, small } = this.#options;
    const variant = variantOf(spec);
    const bytes = small.keptVariant(file, variant) ?? await store.readDerivative(file.blob, variant);
    // One that was cut short by a crash is made again.
    const contentType = bytes === null ? null : imageTypeOf(bytes);
    if (bytes === null || contentType === null) return await this.#make(file, spec);
    small.keepVariant(file, variant, bytes);
    return { contentType, bytes };
  }

  async #make(file: StoredFile, spec: ThumbnailSpec): Promise<Thumbnail> {
    const { store, facts, maker, keepsDeleted } = this.#options;
    const reason = this.#hopeless.get(file.blob);
    if (reason !== undefined) throw new ServiceError(reason);
    try {
      const bytes = await maker.make(() => this.#load(file), spec);
      const contentType = imageTypeOf(bytes);
      if (contentType === null) throw new ServiceError("invalid_image");
      await store.writeDerivative(file.blob, variantOf(spec), bytes).catch((error) => {
        // Reading goes on without room: it is made again next time.
        if (!isDiskFull(error)) throw error;
      });
      // Deleted meanwhile: then what was just written has nobody else who removes it.
      if (!keepsDeleted && await facts.find(file.id) === null) await store.remove(file.blob);
      return { contentType, bytes };
    } catch (error) {
      if (error instanceof ServiceError && lasting.has(error.code)) this.#giveUp(file.blob, error.code);
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

  #giveUp(blob: string, code: ServiceErrorCode): void {
    this.#hopeless.set(blob, code);
    if (this.#hopeless.size <= storageLimits.hopelessImagesMax) return;
    const [oldest] = this.#hopeless.keys();
    if (oldest !== undefined) this.#hopeless.delete(oldest);
  }
}
