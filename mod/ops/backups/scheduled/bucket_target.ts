/** A bucket as target of scheduled backups. Loads the S3 client, so import it on demand. */
import { Bucket, type BucketLocation, bucketReason, isRefusal } from "../../../kit/locations/bucket.ts";
import { opsLimits } from "../../limits.ts";
import { BackupError } from "../backup_error.ts";
import { downloadArchive } from "../bucket_archives.ts";
import type { BackupTarget } from "./backup_target.ts";
import { scheduledAt, scheduledName } from "./names.ts";

export interface BucketTargetOptions {
  /** Aborts requests in flight. */
  readonly signal?: AbortSignal;
  readonly requestMs?: number;
  readonly partBytes?: number;
}

export class BackupBucketTarget implements BackupTarget {
  readonly place: string;
  readonly #bucket: Bucket;
  readonly #partBytes: number;

  private constructor(place: string, { bucket, partBytes }: { bucket: Bucket; partBytes: number }) {
    this.place = place;
    this.#bucket = bucket;
    this.#partBytes = partBytes;
  }

  /**
   * Tests whether backups can be listed and written, and aborts unfinished uploads of a killed server. Throws a `BackupError` if
   * the service rejects that. For an unreachable service it returns the target with the error in `unreachable`, because a server
   * should start anyway; the next backup reports the error again.
   */
  static async open(
    place: BucketLocation,
    { signal, requestMs = opsLimits.bucketRequestMs, partBytes = opsLimits.bucketPartBytes }:
      BucketTargetOptions = {},
  ): Promise<{ readonly target: BackupBucketTarget; readonly unreachable: string | null }> {
    const bucket = new Bucket(place, { requestMs, ...(signal !== undefined && { signal }) });
    const target = new BackupBucketTarget(`s3://${place.bucket}/${place.prefix}`, { bucket, partBytes });
    try {
      await target.check();
      await bucket.abortUnfinishedUploads("scheduled-", (name) => scheduledAt(name) !== null);
      await bucket.checkWritable(scheduledName(new Date()));
      return { target, unreachable: null };
    } catch (error) {
      const reason = bucketReason(error);
      if (!isRefusal(error)) return { target, unreachable: reason };
      bucket[Symbol.dispose]();
      throw new BackupError(`Cannot use ${target.place}: ${reason}`, { cause: error });
    }
  }

  async check(): Promise<void> {
    for await (const _ of this.#bucket.list("scheduled-")) return;
  }

  async list(): Promise<string[]> {
    const names: string[] = [];
    for await (const { name } of this.#bucket.list("scheduled-")) {
      if (scheduledAt(name) !== null) names.push(name);
    }
    return names;
  }

  async put(name: string, path: string): Promise<void> {
    using file = await Deno.open(path);
    const { size } = await file.stat();
    // The number of parts is limited, so very large archives have larger parts.
    const partBytes = Math.max(this.#partBytes, Math.ceil(size / opsLimits.bucketPartsMax));
    const writer = this.#bucket.writer(name, { partBytes });
    try {
      for await (const chunk of file.readable) await writer.write(chunk);
      await writer.commit();
      const stored = await this.#bucket.size(name);
      if (stored !== size) {
        throw new BackupError(`The bucket has stored ${stored ?? "none"} of ${size} bytes`);
      }
    } catch (error) {
      await writer.abort();
      throw error;
    }
  }

  async fetch(name: string, path: string): Promise<boolean> {
    return scheduledAt(name) !== null && await downloadArchive(this.#bucket, { name, path });
  }

  async remove(name: string): Promise<void> {
    await this.#bucket.remove(name);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#bucket[Symbol.dispose]();
    return Promise.resolve();
  }
}
