/** All uploads in pieces: begun with an upload URL, gone on with across broken connections and restarts, and made files. */
import { randomBytes } from "node:crypto";
import { RateLimitedError, ServiceError, UserError } from "../../errors.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import { addressKey } from "../../kit/client_address.ts";
import { RateLimiter } from "../../kit/rate_limit.ts";
import { resumableLimits, storageLimits } from "../limits.ts";
import { fileTooLarge } from "../uploads/blob_intake.ts";
import type { BlobStore } from "../blobs/blob_store.ts";
import { isContentType } from "../content_type.ts";
import { cleanFileName } from "../file_name.ts";
import type { FileTraffic } from "../file_traffic.ts";
import { system } from "../system_calls.ts";
import type { UploadUrls } from "../uploads/upload_urls.ts";
import type { UploadToken } from "../url_signer.ts";
import { byteCount, chunkContentType, uploadChecksum, uploadMetadata } from "./headers.ts";
import { Space } from "./space.ts";
import { Spool, type UploadRecord } from "./spool.ts";
import { ResumableUpload, tooLong, type UploadPiece } from "./upload.ts";

/** A request of the protocol, as it came. */
export interface TusRequest {
  /** Address of the client. */
  readonly client: string;
  /** The upload URL's token, which names the upload too. */
  readonly token: string | null;
  readonly header: (name: string) => string | null;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

/** How far an upload is. */
export interface UploadState {
  /** Bytes that are there. */
  readonly offset: number;
  /** Bytes of the whole file. */
  readonly length: number;
  /** The `Upload-Metadata` header it began with, while it is unfinished. */
  readonly metadata: string | null;
  /** Until when it can be gone on with, milliseconds since the epoch; `null` once it is a file. */
  readonly expiresAt: number | null;
  /** Id of the file it has become. */
  readonly storageId: string | null;
}

export interface ResumableUploadsOptions {
  /** Where unfinished uploads lie. */
  readonly folder: string;
  readonly urls: UploadUrls;
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  /** Largest file, in bytes. */
  readonly bytesMax: number;
  readonly traffic: FileTraffic;
  readonly stallMs?: number;
  readonly now: () => number;
}

interface Unfinished {
  readonly upload: ResumableUpload;
  /** Keeps other uploads from its URL. */
  readonly held: Disposable;
}

export class ResumableUploads implements AsyncDisposable {
  readonly #options: ResumableUploadsOptions;
  readonly #spool: Spool;
  readonly #space: Space;
  readonly #perClient: RateLimiter;
  /** By the random part of their token. */
  readonly #unfinished = new Map<string, Unfinished>();
  /** Blobs that unfinished uploads will be, or are already. */
  readonly #blobs = new Set<string>();
  /** Uploads being written down for the first time. */
  #beginning = 0;
  /** Requests whose bytes are being taken. */
  #receiving = 0;
  /** Settles when it is known what there is; all requests wait for that. */
  readonly #loaded = Promise.withResolvers<void>();
  /** Those that wait for it. */
  #waiting = 0;

  private constructor(options: ResumableUploadsOptions, spool: Spool) {
    this.#options = options;
    this.#spool = spool;
    this.#loaded.promise.catch(() => {});
    this.#space = new Space(options.bytesMax * resumableLimits.spaceInLargestFiles);
    this.#perClient = new RateLimiter({
      ...resumableLimits.requestsPerClient,
      keysMax: storageLimits.rateLimitKeysMax,
      now: options.now,
    });
  }

  /** To be loaded before anything else is answered. */
  static async open(options: ResumableUploadsOptions): Promise<ResumableUploads> {
    return new ResumableUploads(options, await Spool.open(options.folder));
  }

  /** Finds what a server before this one left unfinished, when that one is gone. */
  async load(): Promise<void> {
    try {
      for (const record of await this.#spool.load()) this.#add(record, this.#options.urls.hold(record));
      this.#loaded.resolve();
    } catch (error) {
      this.#loaded.reject(error);
      throw error;
    }
  }

  /** Whether a blob is that of an upload which has not ended. */
  isPending(blob: string): boolean {
    return this.#blobs.has(blob);
  }

  /**
   * Begins an upload, and takes its first bytes when they come along. Asked for the same upload again, because the answer
   * was lost, it tells how far that is. Throws the errors of single uploads, and those of {@linkcode take}.
   */
  async create(request: TusRequest): Promise<UploadState> {
    const { urls } = this.#options;
    urls.count(request.client);
    const token = urls.read(request.token);
    await this.#untilLoaded();
    const piece = await this.#begin(token, request);
    const state = await this.#alone(token, async (upload, signal) => {
      if (piece !== null) await this.#take(upload, { piece, signal });
      return await this.#stateOf(upload);
    });
    return state ?? await this.#finished(token);
  }

  /** How far an upload is. One whose last bytes arrived without an answer becomes a file now. */
  async status(request: TusRequest): Promise<UploadState> {
    const token = await this.#admit(request);
    return await this.#alone(token, (upload) => this.#stateOf(upload)) ?? await this.#finished(token);
  }

  /** Takes bytes that go on with an upload; they are on disk when this resolves. See {@linkcode ResumableUpload.take}. */
  async take(request: TusRequest): Promise<UploadState> {
    const token = await this.#admit(request);
    if (request.header("content-type") !== chunkContentType) {
      throw new ServiceError("unsupported_media_type", `The content type must be ${chunkContentType}`);
    }
    const offset = byteCount("Upload-Offset", request.header("upload-offset"));
    if (offset === null) throw new ServiceError("bad_request", "Upload-Offset is missing");
    const piece = pieceOf({ ...request, offset });
    const state = await this.#alone(token, async (upload, signal) => {
      await this.#take(upload, { piece, signal });
      return await this.#stateOf(upload);
    });
    if (state !== null) return state;
    const finished = await this.#finished(token);
    if (finished.offset !== offset) throw new ServiceError("wrong_upload_offset", "The upload is finished");
    return finished;
  }

  /** Gives an unfinished upload up: its URL can be used again. Throws `upload_url_used` when it has become a file. */
  async remove(request: TusRequest): Promise<void> {
    const token = await this.#admit(request);
    const removed = await this.#alone(token, async (upload) => {
      await this.#end(upload);
      return true;
    });
    if (removed !== null) return;
    await this.#finished(token);
    throw new ServiceError("upload_url_used");
  }

  /** Removes what can no longer be gone on with. */
  async removeExpired(): Promise<void> {
    for (const { upload } of [...this.#unfinished.values()]) {
      if (!this.#isExpired(upload)) continue;
      await upload.alone(async () => {
        if (this.#isKnown(upload)) await this.#end(upload);
      });
    }
  }

  /** Ends the requests under way; what they have brought is kept. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#loaded.reject(new ServiceError("unavailable"));
    await Promise.all([...this.#unfinished.values()].map(({ upload }) => upload.interrupt()));
  }

  async #untilLoaded(): Promise<void> {
    if (this.#waiting >= storageLimits.uploadsAtOnceMax) throw new ServiceError("overloaded");
    this.#waiting++;
    try {
      await this.#loaded.promise;
    } finally {
      this.#waiting--;
    }
  }

  async #admit({ client, token }: TusRequest): Promise<UploadToken> {
    const waitMs = this.#perClient.take(addressKey(client));
    if (waitMs > 0) throw new RateLimitedError(waitMs);
    const read = this.#options.urls.read(token);
    await this.#untilLoaded();
    return read;
  }

  /** Returns the bytes that came along; `null` without any, and when there is such an upload already. */
  async #begin(token: UploadToken, request: TusRequest): Promise<UploadPiece | null> {
    const { urls } = this.#options;
    const known = this.#unfinished.get(token.token)?.upload.record;
    const [length, metadata] = [request.header("upload-length"), request.header("upload-metadata")];
    if (known !== undefined && String(known.length) === length && known.metadata === metadata) return null;
    const held = urls.hold(token);
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

  #add(record: UploadRecord, held: Disposable): void {
    const { stallMs } = this.#options;
    const upload = new ResumableUpload(record, {
      spool: this.#spool,
      space: this.#space,
      ...(stallMs !== undefined && { stallMs }),
    });
    this.#unfinished.set(record.token, { upload, held });
    this.#blobs.add(record.blob);
  }

  /** Runs work on an unfinished upload when nothing else does; `null` when there is none. Throws `upload_expired`. */
  async #alone<T>(
    { token }: UploadToken,
    work: (upload: ResumableUpload, signal: AbortSignal) => Promise<T>,
  ): Promise<T | null> {
    for (;;) {
      const upload = this.#unfinished.get(token)?.upload;
      if (upload === undefined) return null;
      if (this.#isExpired(upload)) throw new ServiceError("upload_expired");
      const done = await upload.alone(async (signal) =>
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
      await upload.take(piece, signal);
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

  /** Makes a file of an upload. Whatever interrupts this, it can be done again. */
  async #finish(upload: ResumableUpload): Promise<string> {
    const { calls, store, traffic, now } = this.#options;
    const sha256 = await upload.seal();
    const { token, blob, length: size, contentType, name, createdBy } = upload.record;
    try {
      await store.adopt(blob, this.#spool.path(upload.record));
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      // The contents are gone: with a file that was deleted before anybody heard of it, or lost.
      await this.#end(upload);
      const used = await calls.query(system.isUploadUsed, { token });
      throw new ServiceError(used ? "upload_url_used" : "not_found");
    }
    const file = {
      blob,
      sha256,
      size,
      ...(contentType !== null && { contentType }),
      ...(name !== null && { name }),
      ...(createdBy !== null && { createdBy }),
    };
    try {
      const storageId = await calls.mutate(system.commitFile, { token, file, now: now() });
      traffic.uploaded(size);
      await this.#end(upload);
      return storageId;
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      await this.#end(upload);
      await store.remove(blob);
      throw new ServiceError("upload_url_used");
    }
  }

  /** The file that an upload has become. Throws `upload_expired` or `not_found` when there is none. */
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
    this.#unfinished.get(token)?.held[Symbol.dispose]();
    this.#unfinished.delete(token);
    this.#blobs.delete(blob);
  }

  #isKnown(upload: ResumableUpload): boolean {
    return this.#unfinished.get(upload.record.token)?.upload === upload;
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
