/** A place in a bucket for scheduled backups. Loads the client's library: only to be loaded when there is a bucket. */
import { Bucket, type BucketLocation, bucketReason, isRefusal } from "../../../kit/locations/bucket.ts";
import { opsLimits } from "../../limits.ts";
import { BackupError } from "../backup_error.ts";
import { downloadArchive } from "../bucket_archives.ts";
import type { BackupTarget } from "./backup_target.ts";
import { scheduledAt, scheduledName } from "./names.ts";

export interface BucketTargetOptions {
  /** Ends requests under way. */
  readonly signal?: AbortSignal;
  readonly requestMs?: number;
  readonly partBytes?: number;
}

export class BucketTarget implements BackupTarget {
  readonly place: string;
  readonly #bucket: Bucket;
  readonly #partBytes: number;

  private constructor(place: string, { bucket, partBytes }: { bucket: Bucket; partBytes: number }) {
    this.place = place;
    this.#bucket = bucket;
    this.#partBytes = partBytes;
  }

  /**
   * Tries whether backups can be listed and written, and ends the uploads that a killed server left unfinished. Throws a
   * `BackupError` when the service refuses that. One that cannot be reached now gives a target all the same, with the
   * reason in `unreachable`: the server is worth more than its next backup, which tells the reason again.
   */
  static async open(
    place: BucketLocation,
    { signal, requestMs = opsLimits.bucketRequestMs, partBytes = opsLimits.bucketPartBytes }:
      BucketTargetOptions = {},
  ): Promise<{ readonly target: BucketTarget; readonly unreachable: string | null }> {
    const bucket = new Bucket(place, { requestMs, ...(signal !== undefined && { signal }) });
    const target = new BucketTarget(`s3://${place.bucket}/${place.prefix}`, { bucket, partBytes });
    try {
      await target.check();
      await bucket.abortUnfinishedUploads("scheduled-", (name) => scheduledAt(name) !== null);
      await bucket.checkWritable(scheduledName(new Date()));
      return { target, unreachable: null };
    } catch (error) {
      const reason = bucketReason(error);
      if (!isRefusal(error)) return { target, unreachable: reason };
      bucket[Symbol.dispose]();
      throw new BackupError(`${target.place} cannot be used: ${reason}`, { cause: error });
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
    // There may be only so many parts: those of very large archives are larger.
    const partBytes = Math.max(this.#partBytes, Math.ceil(size / opsLimits.bucketPartsMax));
    const writer = this.#bucket.writer(name, { partBytes });
    try {
      for await (const chunk of file.readable) await writer.write(chunk);
      await writer.commit();
      const stored = await this.#bucket.size(name);
      if (stored !== size) {
        throw new BackupError(`The bucket has ${stored ?? "none"} of the ${size} bytes that it was sent`);
      }
    } catch (error) {
      await writer.abort();
      throw error;
    }
  }

  async bring(name: string, path: string): Promise<boolean> {
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
