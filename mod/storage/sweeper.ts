/** Looks every now and then for what crashes left behind: blobs without a document, and rows nobody needs any more. */
import type { SystemCalls } from "../functions/system_calls.ts";
import type { Log } from "../kit/log.ts";
import { storageLimits } from "../limits.ts";
import type { BlobIntakes } from "./blob_intake.ts";
import type { BlobStore } from "./blob_store.ts";
import type { Removals } from "./removals.ts";
import { system } from "./system_calls.ts";

export interface SweeperOptions {
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  readonly intakes: BlobIntakes;
  readonly removals: Removals;
  readonly now: () => number;
  readonly log: Log;
}

export class Sweeper implements AsyncDisposable {
  readonly #options: SweeperOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  /** The run under way; a new one begins only after it. */
  #running: Promise<void> | null = null;
  #closed = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.run(), storageLimits.sweepIntervalMs);
    Deno.unrefTimer(this.#timer);
  }

  /** Sweeps now. Never rejects: what failed is tried again at the next interval. */
  run(): Promise<void> {
    return this.#running ??= this.#sweep().finally(() => this.#running = null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#running;
    await this.#options.removals.close();
  }

  async #sweep(): Promise<void> {
    const { calls, removals, now, log } = this.#options;
    try {
      await removals.run();
      const before = now() - storageLimits.usedUploadKeptMs;
      while (!this.#closed && await calls.mutate(system.forgetUsedUploads, { before }));
      await this.#sweepOrphans();
    } catch (error) {
      if (!this.#closed) log("warn", "Stored files could not be swept", { error });
    }
  }

  async #sweepOrphans(): Promise<void> {
    const { store, now } = this.#options;
    const oldest = now() - storageLimits.orphanAgeMs;
    let candidates: string[] = [];
    for await (const { name, writtenAt } of store.list()) {
      if (this.#closed) return;
      if (writtenAt > oldest) continue;
      candidates.push(name);
      if (candidates.length < storageLimits.sweptAtOnceMax) continue;
      await this.#removeOrphans(candidates);
      candidates = [];
    }
    if (candidates.length > 0) await this.#removeOrphans(candidates);
  }

  async #removeOrphans(blobs: string[]): Promise<void> {
    const { calls, store, intakes, log } = this.#options;
    // Asked before the look-up: an upload that ends in between has its document by then.
    const settled = blobs.filter((blob) => !intakes.isPending(blob));
    const orphans = await calls.query(system.orphansAmong, { blobs: settled });
    for (const blob of orphans) await store.remove(blob);
    if (orphans.length > 0) log("info", "Removed contents that no file has", { count: orphans.length });
  }
}
