/** One unfinished upload: who may go on with it, and how its bytes come to disk. */
import { createHash, type Hash, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../../errors.ts";
import { writeAll } from "../../kit/durable_files.ts";
import { resumableLimits } from "../limits.ts";
import { requestChunks } from "../uploads/request_chunks.ts";
import type { Checksum } from "./headers.ts";
import type { Space } from "./space.ts";
import type { Spool, UploadRecord } from "./spool.ts";

/** Bytes that go on with an upload, as they came. */
export interface UploadPiece {
  readonly offset: number;
  readonly contentLength: number | null;
  readonly checksum: Checksum | null;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

export interface ResumableUploadOptions {
  readonly spool: Spool;
  readonly space: Space;
  readonly stallMs?: number;
}

/** A request that has the upload for itself. */
interface Turn {
  /** Aborted when another request wants the upload. */
  readonly wanted: AbortController;
  readonly over: Promise<void>;
}

export class ResumableUpload {
  readonly #options: ResumableUploadOptions;
  #record: UploadRecord;
  /** Of the bytes the record counts; `null` when a server before this one took some of them. */
  #hash: Hash | null;
  #turn: Turn | null = null;
  #waiting = 0;

  /** Counts the bytes the record says are there. */
  constructor(record: UploadRecord, options: ResumableUploadOptions) {
    this.#options = options;
    this.#record = record;
    this.#hash = record.offset === 0 ? createHash("sha256") : null;
    options.space.found(record.offset);
  }

  /** Replaced with each note on disk. */
  get record(): UploadRecord {
    return this.#record;
  }

  get complete(): boolean {
    return this.#record.offset === this.#record.length;
  }

  /**
   * Runs `work` when nothing else runs on this upload. A request before it that is still receiving is ended: whoever asks
   * anew has most likely lost that connection, which this end may notice much later. Throws `upload_in_progress` when too
   * many wait.
   */
  async alone<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#waiting >= resumableLimits.waitingMax) throw new ServiceError("upload_in_progress");
    this.#waiting++;
    try {
      while (this.#turn !== null) {
        this.#turn.wanted.abort(
          new ServiceError("upload_in_progress", "Another request goes on with this upload"),
        );
        await this.#turn.over;
      }
    } finally {
      this.#waiting--;
    }
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const wanted = new AbortController();
    this.#turn = { wanted, over };
    try {
      return await work(wanted.signal);
    } finally {
      this.#turn = null;
      resolve();
    }
  }

  /** Ends the request that is receiving, if there is one, because the server stops; waits for it. */
  async interrupt(): Promise<void> {
    this.#turn?.wanted.abort(new ServiceError("unavailable"));
    await this.#turn?.over;
  }

  /**
   * Takes bytes; they are on disk when this resolves. What arrived before a failure is kept, unless it came with a checksum
   * and is not whole. Throws `wrong_upload_offset`, `file_too_large`, `checksum_mismatch`, `overloaded`, `upload_failed`
   * when the body breaks off, and `upload_in_progress` when another request took over.
   */
  async take({ offset, contentLength, checksum, body }: UploadPiece, signal: AbortSignal): Promise<void> {
    const { length } = this.#record;
    if (offset !== this.#record.offset) {
      throw new ServiceError("wrong_upload_offset", `The upload goes on at byte ${this.#record.offset}`);
    }
    if (offset + (contentLength ?? 0) > length) throw tooLong(length);
    // Nothing can be missing but the end of it.
    if (this.complete) return;
    const { spool, space, stallMs } = this.#options;
    using file = await spool.append(this.#record);
    const hash = this.#hash?.copy() ?? null;
    const check = checksum === null ? null : createHash(checksum.algorithm);
    let at = offset;
    try {
      const options = { contentLength, signal, ...(stallMs !== undefined && { stallMs }) };
      for await (const chunk of requestChunks(body, options)) {
        if (at + chunk.length > length) throw tooLong(length);
        space.take(chunk.length);
        at += chunk.length;
        await writeAll(file, chunk);
        hash?.update(chunk);
        check?.update(chunk);
        const unsaved = at - this.#record.offset;
        if (check === null && unsaved >= resumableLimits.checkpointBytes) {
          await this.#keep(at, { file, hash });
        }
      }
      if (checksum !== null && check !== null) verify(check.digest(), checksum);
      await this.#keep(at, { file, hash });
    } catch (error) {
      const expected = error instanceof ServiceError;
      // A file that could not be written is left at the last note; a body that broke off is kept as far as it came.
      if (expected && checksum === null) await this.#keep(at, { file, hash });
      throw error;
    } finally {
      if (at !== this.#record.offset) await this.#cutOff(at - this.#record.offset, file);
    }
  }

  /** Notes the hash of the whole file, reading it once more if a server before this one took a part of it. */
  async seal(): Promise<string> {
    const { spool } = this.#options;
    if (this.#record.sha256 !== null) return this.#record.sha256;
    const hash = this.#hash?.copy() ?? await hashOf(spool.path(this.#record));
    const sha256 = hash.digest("hex");
    await this.#save({ ...this.#record, sha256 });
    return sha256;
  }

  /** Forgets the bytes and the record, on disk too. */
  async discard(): Promise<void> {
    await this.#options.spool.remove(this.#record);
    this.#options.space.giveBack(this.#record.offset);
  }

  async #keep(
    at: number,
    { file, hash }: { readonly file: Deno.FsFile; readonly hash: Hash | null },
  ): Promise<void> {
    if (at === this.#record.offset) return;
    await file.syncData();
    await this.#save({ ...this.#record, offset: at });
    this.#hash = hash?.copy() ?? null;
  }

  /** Gives back the disk that bytes behind the note take. */
  async #cutOff(bytes: number, file: Deno.FsFile): Promise<void> {
    this.#options.space.giveBack(bytes);
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

/** For bytes beyond the announced length. */
export function tooLong(length: number): ServiceError {
  return new ServiceError("file_too_large", `The upload has more than the ${length} bytes it announced`);
}

async function hashOf(path: string): Promise<Hash> {
  const hash = createHash("sha256");
  using file = await Deno.open(path);
  for await (const chunk of file.readable) hash.update(chunk);
  return hash;
}
