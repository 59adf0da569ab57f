/** Removes contents of deleted files: a row, inserted with the deletion, outlives the blob, so removals resume. */
import type { CommitEntry } from "../../engine/types.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import type { BlobStore } from "./blob_store.ts";
import { system } from "../system_calls.ts";

export interface RemovalsOptions {
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  /** How long the contents of deleted files are retained. */
  readonly keepMs: number;
  readonly now: () => number;
  readonly log: Log;
}

export class Removals {
  readonly #options: RemovalsOptions;
  /** The run in progress. */
  #running: Promise<void> | null = null;
  /** Whether another run was requested during the current one. */
  #again = false;
  #closed = false;

  constructor(options: RemovalsOptions) {
    this.#options = options;
  }

  /** Call with each group of commits, in order. */
  applyCommits(entries: readonly CommitEntry[]): void {
    // With a retention time, blobs are removed by the periodic runs.
    if (this.#options.keepMs > 0) return;
    const deleted = entries.some(({ changes }) =>
      changes.some(({ table, doc }) => table === "_deleted_blobs" && doc !== null)
    );
    if (deleted) void this.run();
  }

  /** Removes all due blobs. Never rejects: failures are retried by the next run. */
  run(): Promise<void> {
    this.#again = this.#running !== null;
    return this.#running ??= this.#runAll().finally(() => this.#running = null);
  }

  /** Waits for the run in progress and prevents further ones. */
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
      if (!this.#closed) log("warn", "Cannot remove contents of deleted files", { error });
    }
  }

  async #removeSome(): Promise<boolean> {
    const { calls, store, keepMs, now } = this.#options;
    const due = await calls.query(system.deletedBlobs, { before: now() - keepMs });
    for (const { blob } of due) await store.remove(blob);
    if (due.length > 0) await calls.mutate(system.forgetDeletedBlobs, { ids: due.map(({ id }) => id) });
    return due.length > 0;
  }
}
