/**
 * Uploads through signed URLs (docs/contract.md, UP), and the rules of these URLs for all kinds of uploads. The upload route
 * calls `Uploads`; resumable uploads share `UploadUrls` and `commitUpload`. The mutation `commitFile` makes a URL single-use;
 * the rate limit and the reservations hold per process.
 */
import { RateLimitedError, ServiceError, UserError } from "../../errors.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import { storageLimits } from "../limits.ts";
import { type BlobIntakes, fileTooLarge, type StoredBlob } from "./blob_intake.ts";
import type { BlobStore } from "../blobs/blob_store.ts";
import { cleanFileName, type FileTraffic, isContentType } from "../stored_file.ts";
import { requestChunks } from "./request_chunks.ts";
import { system } from "../system_calls.ts";
import type { UploadToken, UrlSigner } from "../url_signer.ts";
import { addressKey } from "../../kit/client_address.ts";
import { RateLimiter } from "../../kit/rate_limit.ts";

interface UploadRequest {
  readonly client: string;
  readonly token: string | null;
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly contentLength: number | null;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

interface NewFile extends StoredBlob {
  readonly contentType: string | null;
  readonly name: string | null;
  readonly createdBy: string | null;
}

interface UploadsOptions {
  readonly urls: UploadUrls;
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  readonly intakes: BlobIntakes;
  /** Maximum file size in bytes. */
  readonly bytesMax: number;
  readonly traffic: FileTraffic;
  readonly stallMs?: number;
  readonly now: () => number;
}

/** Uploads of whole bodies. At most `uploadsAtOnceMax` run at once in a process; others are rejected as `overloaded`. */
export class Uploads {
  readonly #options: UploadsOptions;
  #running = 0;

  constructor(options: UploadsOptions) {
    this.#options = options;
  }

  /**
   * Stores a file. Resolves to its ID once durable and committed. After an error the URL stays usable, unless it was used or
   * has expired, or the commit's outcome is unknown.
   */
  async upload(request: UploadRequest): Promise<string> {
    const { urls } = this.#options;
    urls.count(request.client);
    const token = urls.read(request.token);
    using _held = urls.reserve(token);
    if (this.#running >= storageLimits.uploadsAtOnceMax) throw new ServiceError("overloaded");
    this.#running++;
    try {
      await urls.checkUsable(token);
      return await this.#store(token, request);
    } finally {
      this.#running--;
    }
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
    const file = { ...await intake.finish(), contentType, name: cleanFileName(filename), createdBy };
    return await commitUpload(token, file, this.#options);
  }
}

/**
 * Commits an upload's document. Idempotent for the same blob and URL. Throws `upload_url_used`, after removing the contents, if
 * the URL was used for another blob or its file was deleted. After other errors the contents stay: the commit may have
 * happened.
 */
export async function commitUpload(
  token: string,
  { blob, sha256, size, contentType, name, createdBy }: NewFile,
  { calls, store, traffic, now }: Pick<UploadsOptions, "calls" | "store" | "traffic" | "now">,
): Promise<string> {
  const file = {
    ...{ blob, sha256, size },
    ...(contentType !== null && { contentType }),
    ...(name !== null && { name }),
    ...(createdBy !== null && { createdBy }),
  };
  try {
    const id = await calls.mutate(system.commitFile, { token, file, now: now() });
    traffic.uploaded(size);
    return id;
  } catch (error) {
    // It is unknown whether the commit happened: keep the blob and leave it to the orphan sweep.
    if (!(error instanceof UserError)) throw error;
    await store.remove(blob);
    throw new ServiceError("upload_url_used");
  }
}

interface UploadUrlsOptions {
  readonly signer: UrlSigner;
  readonly calls: SystemCalls;
  readonly now: () => number;
}

/** Checks of upload URLs. The rate limit and the reservations hold per process; `commitFile` makes a URL single-use. */
export class UploadUrls {
  readonly #options: UploadUrlsOptions;
  readonly #perClient: RateLimiter;
  readonly #reserved = new Set<string>();

  constructor(options: UploadUrlsOptions) {
    this.#options = options;
    const { uploadsPerClient, rateLimitKeysMax } = storageLimits;
    this.#perClient = new RateLimiter({ ...uploadsPerClient, keysMax: rateLimitKeysMax, now: options.now });
  }

  /** Counts an upload against the client's rate limit. Throws `rate_limited`. */
  count(client: string): void {
    const waitMs = this.#perClient.take(addressKey(client));
    if (waitMs > 0) throw new RateLimitedError(waitMs);
  }

  /** Throws `invalid_upload_url`. */
  read(text: string | null): UploadToken {
    const token = text === null ? null : this.#options.signer.readUploadToken(text);
    if (token === null) throw new ServiceError("invalid_upload_url");
    return token;
  }

  /** Reserves the URL in this process until disposed. Throws `upload_in_progress`. */
  reserve({ token }: Pick<UploadToken, "token">): Disposable {
    if (this.#reserved.has(token)) throw new ServiceError("upload_in_progress");
    this.#reserved.add(token);
    return { [Symbol.dispose]: () => void this.#reserved.delete(token) };
  }

  /** Throws `upload_url_used` or `upload_url_expired`. */
  async checkUsable({ token, createdAt }: UploadToken): Promise<void> {
    const { calls, now } = this.#options;
    if (await calls.query(system.isUploadUsed, { token })) throw new ServiceError("upload_url_used");
    if (now() - createdAt > storageLimits.uploadUrlMs) throw new ServiceError("upload_url_expired");
  }
}
