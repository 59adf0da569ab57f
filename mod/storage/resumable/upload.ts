/**
 * One unfinished upload of the tus protocol (1.0: core, creation, checksum): its request headers, exclusive access, durable
 * progress, and the disk quota that all of them share.
 */
import { Buffer } from "node:buffer";
import { createHash, type Hash, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../../errors.ts";
import { writeAll } from "../../kit/durable_files.ts";
import { resumableLimits } from "../limits.ts";
import { requestChunks } from "../uploads/request_chunks.ts";
import type { Spool, UploadRecord } from "./spool.ts";

/** The only supported protocol version. */
export const tusVersion = "1.0.0";

/** Content type of the bytes to append. */
export const chunkContentType = "application/offset+octet-stream";

/** Supported checksum algorithms; the protocol requires sha1. */
export const checksumAlgorithms = ["sha1", "sha256", "md5"] as const;

export type ChecksumAlgorithm = typeof checksumAlgorithms[number];

/** Expected checksum of a body. */
interface Checksum {
  readonly algorithm: ChecksumAlgorithm;
  readonly digest: Uint8Array;
}

const COUNT = /^(?:0|[1-9]\d{0,14})$/;
const PAIR = /^([\x21-\x2b\x2d-\x7e]+)(?: ([A-Za-z0-9+/]*={0,2}))?$/;
const CHECKSUM = /^([a-z0-9]{1,16}) ([A-Za-z0-9+/]+={0,2})$/;

/** Parses a number of bytes; `null` without the header. Throws `bad_request` for anything else. */
export function byteCount(name: string, value: string | null): number | null {
  if (value === null) return null;
  if (!COUNT.test(value)) throw new ServiceError("bad_request", `${name} must be a number of bytes`);
  return Number(value);
}

/** File name and type from an `Upload-Metadata` header; `null` if missing or empty. */
export interface UploadMetadata {
  readonly filename: string | null;
  readonly filetype: string | null;
}

/** Throws `bad_request` if the header is malformed, repeats a key or is too long. */
export function uploadMetadata(value: string | null): UploadMetadata {
  const pairs = new Map<string, string>();
  if (value !== null && value.length > resumableLimits.metadataCharsMax) {
    throw new ServiceError(
      "bad_request",
      `Upload-Metadata must not exceed ${resumableLimits.metadataCharsMax} characters`,
    );
  }
  for (const pair of value === null || value === "" ? [] : value.split(",")) {
    const [, key, text = ""] = PAIR.exec(pair.trim()) ?? [];
    if (key === undefined || text.length % 4 !== 0 || pairs.has(key)) {
      throw new ServiceError("bad_request", "Upload-Metadata must contain pairs of a key and a base64 value");
    }
    pairs.set(key, Buffer.from(text, "base64").toString());
  }
  return { filename: pairs.get("filename") || null, filetype: pairs.get("filetype") || null };
}

/** Parses an `Upload-Checksum` header. Throws `bad_request` if it is malformed or uses another algorithm. */
export function uploadChecksum(value: string | null): Checksum | null {
  if (value === null) return null;
  const [, name, digest = ""] = CHECKSUM.exec(value) ?? [];
  const algorithm = checksumAlgorithms.find((known) => known === name);
  if (algorithm === undefined) {
    throw new ServiceError("bad_request", `Upload-Checksum must be one of ${checksumAlgorithms.join(", ")}`);
  }
  return { algorithm, digest: Buffer.from(digest, "base64") };
}

/** Bytes to append, as received. */
export interface UploadPiece {
  readonly offset: number;
  readonly contentLength: number | null;
  readonly checksum: Checksum | null;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

interface ResumableUploadOptions {
  readonly spool: Spool;
  readonly quota: UploadQuota;
  readonly reservation: Disposable;
  readonly stallMs?: number;
}

interface ExclusiveAccess {
  /** Aborted when another request needs the upload. */
  readonly wanted: AbortController;
  readonly over: Promise<void>;
}

export class ResumableUpload {
  readonly #options: ResumableUploadOptions;
  #record: UploadRecord;
  /** Hash of the bytes counted by the record; `null` if an earlier server received some of them. */
  #hash: Hash | null;
  #current: ExclusiveAccess | null = null;
  #waiting = 0;

  /** Reserves quota for the bytes counted by the record. */
  constructor(record: UploadRecord, options: ResumableUploadOptions) {
    this.#options = options;
    this.#record = record;
    this.#hash = record.offset === 0 ? createHash("sha256") : null;
    options.quota.addExisting(record.offset);
  }

  /** Replaced on every save. */
  get record(): UploadRecord {
    return this.#record;
  }

  get complete(): boolean {
    return this.#record.offset === this.#record.length;
  }

  /**
   * Runs `work` with exclusive access. An earlier request that is still receiving is aborted, because a client that sends a
   * new request has most likely lost that connection, which the server may notice much later. Throws `upload_in_progress` if
   * too many requests are waiting.
   */
  async exclusively<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#waiting >= resumableLimits.waitingMax) throw new ServiceError("upload_in_progress");
    this.#waiting++;
    try {
      while (this.#current !== null) {
        this.#current.wanted.abort(
          new ServiceError("upload_in_progress", "Another request is using this upload"),
        );
        await this.#current.over;
      }
    } finally {
      this.#waiting--;
    }
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const wanted = new AbortController();
    this.#current = { wanted, over };
    try {
      return await work(wanted.signal);
    } finally {
      this.#current = null;
      resolve();
    }
  }

  /** Aborts the receiving request, if any, and waits for it. Used at server shutdown. */
  async interrupt(): Promise<void> {
    this.#current?.wanted.abort(new ServiceError("unavailable"));
    await this.#current?.over;
  }

  /**
   * Appends bytes; resolves when they are durable. Bytes received before a failure are kept, unless they came with a checksum.
   * Throws `wrong_upload_offset`, `file_too_large`, `checksum_mismatch`, `overloaded`, `upload_failed` if the body breaks off,
   * and `upload_in_progress` if another request took over.
   */
  async append({ offset, contentLength, checksum, body }: UploadPiece, signal: AbortSignal): Promise<void> {
    const { length } = this.#record;
    if (offset !== this.#record.offset) {
      throw new ServiceError("wrong_upload_offset", `The upload continues at byte ${this.#record.offset}`);
    }
    if (offset + (contentLength ?? 0) > length) throw tooLong(length);
    // Only the end of the body can be missing.
    if (this.complete) return;
    const { spool, quota, stallMs } = this.#options;
    using file = await spool.append(this.#record);
    const hash = this.#hash?.copy() ?? null;
    const check = checksum === null ? null : createHash(checksum.algorithm);
    let at = offset;
    try {
      const options = { contentLength, signal, ...(stallMs !== undefined && { stallMs }) };
      for await (const chunk of requestChunks(body, options)) {
        if (at + chunk.length > length) throw tooLong(length);
        quota.reserve(chunk.length);
        at += chunk.length;
        await writeAll(file, chunk);
        hash?.update(chunk);
        check?.update(chunk);
        const unsaved = at - this.#record.offset;
        if (check === null && unsaved >= resumableLimits.checkpointBytes) {
          await this.#saveProgress(at, { file, hash });
        }
      }
      if (checksum !== null && check !== null) verify(check.digest(), checksum);
      await this.#saveProgress(at, { file, hash });
    } catch (error) {
      const expected = error instanceof ServiceError;
      // After a write error the upload falls back to the last save; a broken body is kept as far as it was received.
      if (expected && checksum === null) await this.#saveProgress(at, { file, hash });
      throw error;
    } finally {
      if (at !== this.#record.offset) await this.#truncate(at - this.#record.offset, file);
    }
  }

  /** Saves the hash of the whole file. Rereads the file if an earlier server received a part of it. */
  async saveHash(): Promise<string> {
    const { spool } = this.#options;
    if (this.#record.sha256 !== null) return this.#record.sha256;
    const hash = this.#hash?.copy() ?? await hashOf(spool.path(this.#record));
    const sha256 = hash.digest("hex");
    await this.#save({ ...this.#record, sha256 });
    return sha256;
  }

  /** Removes the bytes and the record, also on disk, and makes the URL usable again. */
  async discard(): Promise<void> {
    await this.#options.spool.remove(this.#record);
    this.#options.quota.release(this.#record.offset);
    this.#options.reservation[Symbol.dispose]();
  }

  async #saveProgress(
    at: number,
    { file, hash }: { readonly file: Deno.FsFile; readonly hash: Hash | null },
  ): Promise<void> {
    if (at === this.#record.offset) return;
    await file.syncData();
    await this.#save({ ...this.#record, offset: at });
    this.#hash = hash?.copy() ?? null;
  }

  /** Truncates bytes after the last save and releases their quota. */
  async #truncate(bytes: number, file: Deno.FsFile): Promise<void> {
    this.#options.quota.release(bytes);
    await file.truncate(this.#record.offset);
  }

  async #save(record: UploadRecord): Promise<void> {
    await this.#options.spool.save(record);
    this.#record = record;
  }
}

function verify(digest: Uint8Array, { digest: expected }: Checksum): void {
  if (digest.length !== expected.length || !timingSafeEqual(digest, expected)) {
    throw new ServiceError("checksum_mismatch");
  }
}

/** Error for bytes beyond the announced length. */
export function tooLong(length: number): ServiceError {
  return new ServiceError("file_too_large", `The upload exceeds its announced length of ${length} bytes`);
}

async function hashOf(path: string): Promise<Hash> {
  const hash = createHash("sha256");
  using file = await Deno.open(path);
  for await (const chunk of file.readable) hash.update(chunk);
  return hash;
}

export class UploadQuota {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Reserves bytes. Throws `overloaded` if the quota is exceeded. */
  reserve(bytes: number): void {
    if (this.#bytes + bytes > this.#bytesMax) {
      throw new ServiceError(
        "overloaded",
        "The disk quota of unfinished uploads is used up. Try again later.",
      );
    }
    this.#bytes += bytes;
  }

  /** Adds existing bytes, even beyond the quota. */
  addExisting(bytes: number): void {
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}
