/** A place in a bucket for a replica. Loads the client's library: only to be loaded when there is a bucket. */
import { setTimeout as wait } from "node:timers/promises";
import { Bucket, type BucketPlace, bucketReason, isRefusal } from "../../../kit/bucket.ts";
import { opsLimits, replicationLimits } from "../../limits.ts";
import { downloadArchive } from "../../backups/bucket_archives.ts";
import { ReplicaError } from "../replica_error.ts";
import type { ReplicaTarget, TargetObject } from "./replica_target.ts";

export interface BucketTargetOptions {
  /** Ends requests under way. */
  readonly signal?: AbortSignal;
  readonly requestMs?: number;
  /** For services without conditional writes: how long another who writes at the same moment is waited for. */
  readonly settleMs?: number;
}

export class BucketTarget implements ReplicaTarget {
  readonly place: string;
  readonly #bucket: Bucket;
  readonly #settleMs: number;
  readonly #signal: AbortSignal | undefined;

  constructor(
    place: BucketPlace,
    { signal, requestMs = replicationLimits.requestMs, settleMs = replicationLimits.settleMs }:
      BucketTargetOptions = {},
  ) {
    this.place = `s3://${place.bucket}/${place.prefix}`;
    this.#bucket = new Bucket(place, { requestMs, ...(signal !== undefined && { signal }) });
    this.#signal = signal;
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
      const found = await this.#bucket.read(name);
      if (found === null) return null;
      if (found.size > replicationLimits.objectBytesMax) {
        await found.body.cancel();
        throw new ReplicaError("target", `"${name}" is larger than anything of its kind: it is damaged`);
      }
      return new Uint8Array(await new Response(found.body).arrayBuffer());
    });
  }

  async download(name: string, path: string): Promise<boolean> {
    return await this.#told(() => downloadArchive(this.#bucket, { name, path }));
  }

  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#told(() => this.#bucket.put(name, bytes));
  }

  async upload(name: string, path: string): Promise<void> {
    await this.#told(async () => {
      using file = await Deno.open(path);
      const { size } = await file.stat();
      // There may be only so many parts: those of very large snapshots are larger.
      const partBytes = Math.max(opsLimits.bucketPartBytes, Math.ceil(size / opsLimits.bucketPartsMax));
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
