/** A place in a bucket for a replica. Loads the client's library: only to be loaded when there is a bucket. */
import { Buffer } from "node:buffer";
import { setTimeout as wait } from "node:timers/promises";
import { Bucket, type BucketLocation, bucketReason, isRefusal } from "../../../kit/locations/bucket.ts";
import { ObjectLostError, type OpenedObject, openObject } from "../../../kit/locations/bucket_object.ts";
import { S3Store } from "../../../kit/locations/s3_store.ts";
import type { RetryPolicy } from "../../../kit/locations/bucket_retries.ts";
import { opsLimits, replicationLimits } from "../../limits.ts";
import { downloadArchive } from "../../backups/stored_archives.ts";
import { GENERATIONS } from "../names.ts";
import { ReplicaError } from "../replica_error.ts";
import { removeOldTries } from "./tries.ts";
import { ObjectGoneError, type ReplicaTarget, type TargetObject } from "./replica_target.ts";

export interface BucketTargetOptions {
  /** Ends requests under way. */
  readonly signal?: AbortSignal;
  readonly requestMs?: number;
  /** How often a request is tried. */
  readonly patience?: RetryPolicy;
  /** For services without conditional writes: how long another who writes at the same moment is waited for. */
  readonly settleMs?: number;
}

export class BucketTarget implements ReplicaTarget {
  readonly place: string;
  readonly #bucket: Bucket;
  readonly #store: S3Store;
  readonly #requestMs: number;
  readonly #settleMs: number;
  readonly #signal: AbortSignal | undefined;

  constructor(
    place: BucketLocation,
    {
      signal,
      requestMs = replicationLimits.requestMs,
      patience = { attempts: replicationLimits.requestAttempts },
      settleMs = replicationLimits.settleMs,
    }: BucketTargetOptions = {},
  ) {
    this.place = `s3://${place.bucket}/${place.prefix}`;
    this.#bucket = new Bucket(place, {
      requestMs,
      retryPolicy: patience,
      ...(signal !== undefined && { signal }),
    });
    this.#signal = signal;
    const { attempts, pause } = patience;
    this.#store = new S3Store(place, { requestMs, attempts, ...(pause && { pause }) });
    this.#requestMs = requestMs;
    this.#settleMs = settleMs;
  }

  async *list(begin: string): AsyncGenerator<TargetObject> {
    try {
      for await (const { name, size } of this.#bucket.list(begin)) yield { name, size };
    } catch (error) {
      throw this.#explained(error);
    }
  }

  async read(name: string): Promise<Uint8Array<ArrayBuffer> | null> {
    return await this.#told(async () => {
      await using object = await this.#open(name);
      if (object === null) return null;
      return await bytesOf(name, object).catch((error) => {
        if (error instanceof ObjectLostError && error.why === "gone") return null;
        throw error;
      });
    });
  }

  async stream(name: string): Promise<AsyncIterable<Uint8Array<ArrayBuffer>> | null> {
    const object = await this.#told(() => this.#open(name));
    return object === null ? null : this.#chunks(name, object);
  }

  async download(name: string, path: string): Promise<boolean> {
    return await this.#told(() => downloadArchive(this.#store, { name, path }));
  }

  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#told(() => this.#bucket.put(name, bytes));
  }

  async upload(name: string, path: string): Promise<void> {
    await this.#told(async () => {
      using file = await Deno.open(path);
      const { size } = await file.stat();
      // There may be only so many parts: those of very large snapshots are larger.
      const partBytes = Math.max(opsLimits.bucketPartBytes, Math.ceil(size / 10_000));
      const writer = this.#bucket.writer(name, { partBytes });
      try {
        for await (const chunk of file.readable) await writer.write(chunk);
        await writer.commit();
      } catch (error) {
        await writer.abort();
        throw error;
      }
    });
  }

  async create(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<boolean> {
    return await this.#told(async () => {
      const created = await this.#bucket.create(name, bytes);
      return created ?? await this.#createUnconditionally(name, bytes);
    });
  }

  async remove(name: string): Promise<void> {
    await this.#told(() => this.#bucket.remove(name));
  }

  async tidy(at: number): Promise<void> {
    const before = at - replicationLimits.uploadKeptMs;
    // The parts of an upload that nobody ends are paid for, and no listing of objects shows them. Where the key may not
    // look for them, or the service knows no such listing, they stay.
    await this.#bucket.abortUnfinishedUploads(
      GENERATIONS,
      (_, begunAt) => begunAt !== null && begunAt < before,
    )
      .catch(() => {});
    await removeOldTries(this, at).catch(() => {});
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#bucket[Symbol.dispose]();
    return Promise.resolve();
  }

  /**
   * For services that know no conditional writes: of two who write at once the later stays, and each looks after a pause
   * whose it is. Weaker: one that is slower than the pause is not noticed here.
   */
  async #createUnconditionally(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<boolean> {
    if (await this.#bucket.size(name) !== null) return false;
    await this.#bucket.put(name, bytes);
    await wait(this.#settleMs, undefined, this.#signal === undefined ? {} : { signal: this.#signal });
    const there = await this.read(name);
    return there !== null && there.length === bytes.length && there.every((byte, at) => byte === bytes[at]);
  }

  async #open(name: string): Promise<OpenedObject | null> {
    const { readAttemptsMax: attemptsMax } = replicationLimits;
    return await openObject(this.#bucket, { name, stallMs: this.#requestMs, attemptsMax });
  }

  async *#chunks(name: string, opened: OpenedObject): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    await using object = opened;
    try {
      yield* object.chunks;
    } catch (error) {
      if (error instanceof ObjectLostError && error.why === "gone") throw new ObjectGoneError(name);
      throw this.#explained(error);
    }
  }

  async #told<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw this.#explained(error);
    }
  }

  #explained(error: unknown): unknown {
    if (error instanceof ReplicaError || this.#signal?.aborted) return error;
    return new ReplicaError(
      isRefusal(error) ? "refused" : "away",
      `${this.place} cannot be used: ${bucketReason(error)}`,
      { cause: error },
    );
  }
}

async function bytesOf(
  name: string,
  { size, chunks }: OpenedObject,
): Promise<Uint8Array<ArrayBuffer>> {
  checkSize(name, size);
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    checkSize(name, bytes);
    parts.push(chunk);
  }
  const { buffer, byteOffset, byteLength } = Buffer.concat(parts, bytes);
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function checkSize(name: string, bytes: number): void {
  if (bytes <= replicationLimits.objectBytesMax) return;
  throw new ReplicaError("target", `"${name}" is larger than anything of its kind: it is damaged`);
}
