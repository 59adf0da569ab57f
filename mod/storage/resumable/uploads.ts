/** Resumable uploads: created with an upload URL, resumed across lost connections and restarts, and stored as files. */
import { randomBytes } from "node:crypto";
import { RateLimitedError, ServiceError } from "../../errors.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import { addressKey } from "../../kit/client_address.ts";
import { LocationError } from "../../kit/locations/object_store.ts";
import { RateLimiter } from "../../kit/rate_limit.ts";
import { resumableLimits, storageLimits } from "../limits.ts";
import { fileTooLarge } from "../uploads/blob_intake.ts";
import type { BlobStore } from "../blobs/blob_store.ts";
import { cleanFileName, type FileTraffic, isContentType } from "../stored_file.ts";
import { system } from "../system_calls.ts";
import { commitUpload, type UploadUrls } from "../uploads/uploads.ts";
import type { UploadToken } from "../url_signer.ts";
import {
  byteCount,
  chunkContentType,
  ResumableUpload,
  tooLong,
  uploadChecksum,
  uploadMetadata,
  type UploadPiece,
  UploadQuota,
} from "./upload.ts";
import { Spool, type UploadRecord } from "./spool.ts";

export interface TusRequest {
  readonly client: string;
  /** Token of the upload URL, which also identifies the upload. */
  readonly token: string | null;
  readonly header: (name: string) => string | null;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

export interface UploadState {
  /** Bytes received. */
  readonly offset: number;
  /** Size of the whole file in bytes. */
  readonly length: number;
  /** The `Upload-Metadata` header it was created with, while unfinished. */
  readonly metadata: string | null;
  /** Expiry in milliseconds since the epoch; `null` once it is a file. */
  readonly expiresAt: number | null;
  readonly storageId: string | null;
}

export interface ResumableUploadsOptions {
  readonly folder: string;
  readonly urls: UploadUrls;
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  /** Maximum file size in bytes. */
  readonly bytesMax: number;
  readonly traffic: FileTraffic;
  readonly stallMs?: number;
  readonly now: () => number;
}

export class ResumableUploads implements AsyncDisposable {
  readonly #options: ResumableUploadsOptions;
  readonly #spool: Spool;
  readonly #quota: UploadQuota;
  readonly #perClient: RateLimiter;
  /** By the random part of the token. */
  readonly #unfinished = new Map<string, ResumableUpload>();
  readonly #blobs = new Set<string>();
  /** Uploads being created. */
  #beginning = 0;
  /** Requests being received. */
  #receiving = 0;

  private constructor(options: ResumableUploadsOptions, spool: Spool) {
    this.#options = options;
    this.#spool = spool;
    this.#quota = new UploadQuota(options.bytesMax * resumableLimits.spaceInLargestFiles);
    this.#perClient = new RateLimiter({
      ...resumableLimits.requestsPerClient,
      keysMax: storageLimits.rateLimitKeysMax,
      now: options.now,
    });
  }

  /** Opens the folder and loads unfinished uploads of an earlier server. */
  static async open(options: ResumableUploadsOptions): Promise<ResumableUploads> {
    const spool = await Spool.open(options.folder);
    const uploads = new ResumableUploads(options, spool);
    for (const record of await spool.load()) uploads.#add(record, options.urls.reserve(record));
    return uploads;
  }

  isPending(blob: string): boolean {
    return this.#blobs.has(blob);
  }

  /** Creates an upload, or returns the progress of an existing one. Throws as single uploads and {@linkcode append}. */
  async create(request: TusRequest): Promise<UploadState> {
    const { urls } = this.#options;
    urls.count(request.client);
    const token = urls.read(request.token);
    const piece = await this.#begin(token, request);
    const state = await this.#exclusively(token, async (upload, signal) => {
      if (piece !== null) await this.#take(upload, { piece, signal });
      return await this.#stateOf(upload);
    });
    return state ?? await this.#finished(token);
  }

  /** Returns the progress. Finishes an upload whose last response was lost. */
  async status(request: TusRequest): Promise<UploadState> {
    const token = this.#admit(request);
    return await this.#exclusively(token, (upload) => this.#stateOf(upload)) ?? await this.#finished(token);
  }

  /** Appends bytes; resolves when they are durable. See {@linkcode ResumableUpload.append}. */
  async append(request: TusRequest): Promise<UploadState> {
    const token = this.#admit(request);
    if (request.header("content-type") !== chunkContentType) {
      throw new ServiceError("unsupported_media_type", `The content type must be ${chunkContentType}`);
    }
    const offset = byteCount("Upload-Offset", request.header("upload-offset"));
    if (offset === null) throw new ServiceError("bad_request", "Upload-Offset is missing");
    const piece = pieceOf({ ...request, offset });
    const state = await this.#exclusively(token, async (upload, signal) => {
      await this.#take(upload, { piece, signal });
      return await this.#stateOf(upload);
    });
    if (state !== null) return state;
    const finished = await this.#finished(token);
    if (finished.offset !== offset) throw new ServiceError("wrong_upload_offset", "The upload is finished");
    return finished;
  }

  /** Deletes an unfinished upload; its URL can be used again. Throws `upload_url_used` if it is already a file. */
  async remove(request: TusRequest): Promise<void> {
    const token = this.#admit(request);
    const removed = await this.#exclusively(token, async (upload) => {
      await this.#end(upload);
      return true;
    });
    if (removed !== null) return;
    await this.#finished(token);
    throw new ServiceError("upload_url_used");
  }

  async removeExpired(): Promise<void> {
    for (const upload of [...this.#unfinished.values()]) {
      if (!this.#isExpired(upload)) continue;
      await upload.exclusively(async () => {
        if (this.#isKnown(upload)) await this.#end(upload);
      });
    }
  }

  /** Aborts running requests; received bytes are kept. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#unfinished.values()].map((upload) => upload.interrupt()));
  }

  #admit({ client, token }: TusRequest): UploadToken {
    const waitMs = this.#perClient.take(addressKey(client));
    if (waitMs > 0) throw new RateLimitedError(waitMs);
    return this.#options.urls.read(token);
  }

  /** Creates an upload and returns its first bytes; `null` without bytes or if the upload already exists. */
  async #begin(token: UploadToken, request: TusRequest): Promise<UploadPiece | null> {
    const { urls } = this.#options;
    const known = this.#unfinished.get(token.token)?.record;
    const [length, metadata] = [request.header("upload-length"), request.header("upload-metadata")];
    if (known !== undefined && String(known.length) === length && known.metadata === metadata) return null;
    const held = urls.reserve(token);
    this.#beginning++;
    try {
      await urls.checkUsable(token);
      const record = this.#newRecord(token, { length, metadata });
      const piece = request.header("content-type") === chunkContentType
        ? pieceOf({ ...request, offset: 0 })
        : null;
      if ((piece?.contentLength ?? 0) > record.length) throw tooLong(record.length);
      if (this.#unfinished.size + this.#beginning > resumableLimits.uploadsMax) {
        throw new ServiceError("overloaded");
      }
      await this.#spool.create(record);
      this.#add(record, held);
      return piece;
    } catch (error) {
      held[Symbol.dispose]();
      throw error;
    } finally {
      this.#beginning--;
    }
  }

  #newRecord(
    { token, createdBy }: UploadToken,
    { length, metadata }: { readonly length: string | null; readonly metadata: string | null },
  ): UploadRecord {
    const { bytesMax, now } = this.#options;
    const { filename, filetype } = uploadMetadata(metadata);
    if (filetype !== null && !isContentType(filetype)) throw new ServiceError("invalid_content_type");
    const bytes = byteCount("Upload-Length", length);
    if (bytes === null) throw new ServiceError("bad_request", "Upload-Length is missing");
    if (bytes > bytesMax) throw fileTooLarge(bytesMax);
    return {
      token,
      blob: randomBytes(16).toString("hex"),
      length: bytes,
      offset: 0,
      metadata,
      contentType: filetype,
      name: cleanFileName(filename),
      createdBy,
      beganAt: now(),
      sha256: null,
    };
  }

  #add(record: UploadRecord, reservation: Disposable): void {
    const { stallMs } = this.#options;
    const upload = new ResumableUpload(record, {
      spool: this.#spool,
      quota: this.#quota,
      reservation,
      ...(stallMs !== undefined && { stallMs }),
    });
    this.#unfinished.set(record.token, upload);
    this.#blobs.add(record.blob);
  }

  /** Runs `work` with exclusive access to an unfinished upload; `null` if there is none. Throws `upload_expired`. */
  async #exclusively<T>(
    { token }: UploadToken,
    work: (upload: ResumableUpload, signal: AbortSignal) => Promise<T>,
  ): Promise<T | null> {
    for (;;) {
      const upload = this.#unfinished.get(token);
      if (upload === undefined) return null;
      if (this.#isExpired(upload)) throw new ServiceError("upload_expired");
      const done = await upload.exclusively(async (signal) =>
        this.#isKnown(upload) ? { value: await work(upload, signal) } : null
      );
      if (done !== null) return done.value;
    }
  }

  async #take(
    upload: ResumableUpload,
    { piece, signal }: { readonly piece: UploadPiece; readonly signal: AbortSignal },
  ): Promise<void> {
    if (this.#receiving >= storageLimits.uploadsAtOnceMax) throw new ServiceError("overloaded");
    this.#receiving++;
    try {
      await upload.append(piece, signal);
    } finally {
      this.#receiving--;
    }
  }

  async #stateOf(upload: ResumableUpload): Promise<UploadState> {
    const { offset, length, metadata, beganAt } = upload.record;
    if (!upload.complete) {
      return { offset, length, metadata, expiresAt: beganAt + resumableLimits.keptMs, storageId: null };
    }
    const storageId = await this.#finish(upload);
    return { offset, length, metadata, expiresAt: null, storageId };
  }

  /** Stores an upload as a file. Can be repeated after any interruption. */
  async #finish(upload: ResumableUpload): Promise<string> {
    const { calls, store } = this.#options;
    const sha256 = await upload.saveHash();
    const { token, blob, length: size, contentType, name, createdBy } = upload.record;
    try {
      await store.adopt(blob, this.#spool.path(upload.record));
    } catch (error) {
      const cause = error instanceof LocationError ? error.cause : error;
      if (!(cause instanceof Deno.errors.NotFound)) throw error;
      // The contents are missing: the file was deleted before the client received its ID, or they were lost.
      await this.#end(upload);
      const used = await calls.query(system.isUploadUsed, { token });
      throw new ServiceError(used ? "upload_url_used" : "not_found");
    }
    const file = { blob, sha256, size, contentType, name, createdBy };
    try {
      const storageId = await commitUpload(token, file, this.#options);
      await this.#end(upload);
      return storageId;
    } catch (error) {
      if (error instanceof ServiceError && error.code === "upload_url_used") await this.#end(upload);
      throw error;
    }
  }

  /** Returns the file made from an upload. Throws `upload_expired` or `not_found` if there is none. */
  async #finished({ token, createdAt }: UploadToken): Promise<UploadState> {
    const { calls, now } = this.#options;
    const file = await calls.query(system.uploadedFile, { token });
    if (file !== null) {
      const { id: storageId, size } = file;
      return { offset: size, length: size, metadata: null, expiresAt: null, storageId };
    }
    const over = createdAt + storageLimits.uploadUrlMs + resumableLimits.keptMs;
    throw new ServiceError(now() > over ? "upload_expired" : "not_found");
  }

  async #end(upload: ResumableUpload): Promise<void> {
    const { token, blob } = upload.record;
    await upload.discard();
    this.#unfinished.delete(token);
    this.#blobs.delete(blob);
  }

  #isKnown(upload: ResumableUpload): boolean {
    return this.#unfinished.get(upload.record.token) === upload;
  }

  #isExpired({ record: { beganAt } }: ResumableUpload): boolean {
    return this.#options.now() - beganAt > resumableLimits.keptMs;
  }
}

function pieceOf(
  { offset, header, body }: Pick<TusRequest, "header" | "body"> & { readonly offset: number },
): UploadPiece {
  return {
    offset,
    contentLength: byteCount("Content-Length", header("content-length")),
    checksum: uploadChecksum(header("upload-checksum")),
    body,
  };
}
