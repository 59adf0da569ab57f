/**
 * Removes the contents of deleted files. A deletion commits a row that names the blob; the row is forgotten once the blob
 * is gone, so whatever is interrupted goes on where it stood.
 */
import type { CommitEntry } from "../../engine/types.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import type { BlobStore } from "./blob_store.ts";
import { system } from "../system_calls.ts";

export interface RemovalsOptions {
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  /** How long the contents of deleted files are kept. */
  readonly keepMs: number;
  readonly now: () => number;
  readonly log: Log;
}

export class Removals {
  readonly #options: RemovalsOptions;
  /** The run under way. */
  #running: Promise<void> | null = null;
  /** Set when a run is asked for during one. */
  #again = false;
  #closed = false;

  constructor(options: RemovalsOptions) {
    this.#options = options;
  }

  /** Takes note of commits: to be called with each group, in order. */
  applyCommits(entries: readonly CommitEntry[]): void {
    // What is to be kept for some time is left to the runs at intervals.
    if (this.#options.keepMs > 0) return;
    const deleted = entries.some(({ changes }) =>
      changes.some(({ table, doc }) => table === "_deleted_blobs" && doc !== null)
    );
    if (deleted) void this.run();
  }

  /** Removes what is due. Never rejects: what failed is tried again with the next run. */
  run(): Promise<void> {
    this.#again = this.#running !== null;
    return this.#running ??= this.#runAll().finally(() => this.#running = null);
  }

  /** Waits for the run under way; none begins afterwards. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #runAll(): Promise<void> {
    const { log } = this.#options;
    try {
      do {
        this.#again = false;
        while (!this.#closed && await this.#removeSome());
      } while (this.#again && !this.#closed);
    } catch (error) {
      if (!this.#closed) log("warn", "Contents of deleted files could not be removed", { error });
    }
  }

  /** Returns whether there may be more. */
  async #removeSome(): Promise<boolean> {
    const { calls, store, keepMs, now } = this.#options;
    const due = await calls.query(system.deletedBlobs, { before: now() - keepMs });
    for (const { blob } of due) await store.remove(blob);
    if (due.length > 0) await calls.mutate(system.forgetDeletedBlobs, { ids: due.map(({ id }) => id) });
    return due.length > 0;
  }
}
