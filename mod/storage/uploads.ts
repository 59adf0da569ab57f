/** Uploads through signed URLs (contract: Upload URL, POST /api/storage/upload). */
import { RateLimitedError, ServiceError, UserError } from "../errors.ts";
import type { SystemCalls } from "../functions/system_calls.ts";
import { addressKey } from "../kit/client_address.ts";
import { RateLimiter } from "../kit/rate_limit.ts";
import { storageLimits } from "../limits.ts";
import { type BlobIntakes, fileTooLarge, type StoredBlob } from "./blob_intake.ts";
import type { BlobStore } from "./blob_store.ts";
import { isContentType } from "./content_type.ts";
import { cleanFileName } from "./file_name.ts";
import { requestChunks } from "./request_chunks.ts";
import { system } from "./system_calls.ts";
import type { UploadToken, UrlSigner } from "./url_signer.ts";

/** A request to upload, as it came. */
export interface UploadRequest {
  /** Address of the client. */
  readonly client: string;
  readonly token: string | null;
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly contentLength: number | null;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

/** What is said of a file in its document. */
interface NewFile extends StoredBlob {
  readonly contentType?: string;
  readonly name?: string;
  readonly createdBy?: string;
}

export interface UploadsOptions {
  readonly signer: UrlSigner;
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  readonly intakes: BlobIntakes;
  /** Largest file, in bytes. */
  readonly bytesMax: number;
  readonly stallMs?: number;
  readonly now: () => number;
}

export class Uploads {
  readonly #options: UploadsOptions;
  readonly #perClient: RateLimiter;
  /** URLs with an upload under way. They are given back when it ends, however it ends. */
  readonly #inProgress = new Set<string>();

  constructor(options: UploadsOptions) {
    this.#options = options;
    const { uploadsPerClient, rateLimitKeysMax } = storageLimits;
    this.#perClient = new RateLimiter({ ...uploadsPerClient, keysMax: rateLimitKeysMax, now: options.now });
  }

  /**
   * Stores a file; resolves to its id once its contents are on disk and its document is committed. Throws the errors of
   * the contract's table; the URL can be used again then.
   */
  async upload(request: UploadRequest): Promise<string> {
    const waitMs = this.#perClient.take(addressKey(request.client));
    if (waitMs > 0) throw new RateLimitedError(waitMs);
    const token = request.token === null ? null : this.#options.signer.readUploadToken(request.token);
    if (token === null) throw new ServiceError("invalid_upload_url");
    if (this.#inProgress.has(token.token)) throw new ServiceError("upload_in_progress");
    if (this.#inProgress.size >= storageLimits.uploadsAtOnceMax) throw new ServiceError("overloaded");
    this.#inProgress.add(token.token);
    try {
      await this.#checkUnused(token);
      return await this.#store(token, request);
    } finally {
      this.#inProgress.delete(token.token);
    }
  }

  async #checkUnused({ token, createdAt }: UploadToken): Promise<void> {
    const { calls, now } = this.#options;
    if (await calls.query(system.isUploadUsed, { token })) throw new ServiceError("upload_url_used");
    if (now() - createdAt > storageLimits.uploadUrlMs) throw new ServiceError("upload_url_expired");
  }

  async #store(
    { token, createdBy }: UploadToken,
    { filename, contentType, contentLength, body }: UploadRequest,
  ): Promise<string> {
    const { bytesMax, stallMs, intakes } = this.#options;
    if (contentType !== null && !isContentType(contentType)) throw new ServiceError("invalid_content_type");
    if (contentLength !== null && contentLength > bytesMax) throw fileTooLarge(bytesMax);
    await using intake = await intakes.begin();
    const chunks = requestChunks(body, { contentLength, ...(stallMs !== undefined && { stallMs }) });
    for await (const chunk of chunks) await intake.write(chunk);
    const name = cleanFileName(filename);
    const file: NewFile = {
      ...await intake.finish(),
      ...(contentType !== null && { contentType }),
      ...(name !== null && { name }),
      ...(createdBy !== null && { createdBy }),
    };
    return await this.#commit(token, file);
  }

  async #commit(token: string, file: NewFile): Promise<string> {
    const { calls, store, now } = this.#options;
    try {
      return await calls.mutate(system.commitFile, { token, file, now: now() });
    } catch (error) {
      // Whether another failure came before or after the commit is unknown: the sweep of orphans finds out.
      if (!(error instanceof UserError)) throw error;
      await store.remove(file.blob);
      throw new ServiceError("upload_url_used");
    }
  }
}
