/** Removes contents of deleted files, and periodically blobs without a document, left by crashes, and obsolete rows. */
import type { CommitEntry } from "../engine/types.ts";
import type { SystemCalls } from "../functions/system_calls.ts";
import { RecurringWork } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { BlobStore } from "./blobs/blob_store.ts";
import { storageLimits } from "./limits.ts";
import type { ResumableUploads } from "./resumable/uploads.ts";
import { system } from "./system_calls.ts";

export interface RemovalsOptions {
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  /** How long the contents of deleted files are retained. */
  readonly keepMs: number;
  readonly now: () => number;
  readonly log: Log;
}

/** Removes contents of deleted files: a row, inserted with the deletion, outlives the blob, so removals resume. */
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
    const due = await calls.queryInWriter(system.deletedBlobs, { before: now() - keepMs });
    for (const { blob } of due) await store.remove(blob);
    if (due.length > 0) await calls.mutate(system.forgetDeletedBlobs, { ids: due.map(({ id }) => id) });
    return due.length > 0;
  }
}

export interface CleanupOptions {
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  /** Whether a blob belongs to an unfinished upload. */
  readonly isPending: (blob: string) => boolean;
  readonly removals: Removals;
  readonly resumables: ResumableUploads;
  /** Time of the newest earlier state that is stored, which may reference older blobs; `null` if there is none. */
  readonly databaseReplacedAt: () => Promise<number | null>;
  /** Whether all files stored by other servers are known here. */
  readonly knowsAll: () => boolean;
  readonly now: () => number;
  readonly log: Log;
}

/** Starts the periodic cleanup; `run` does it now. */
export function createCleanup(options: CleanupOptions): RecurringWork {
  const { calls, removals, resumables, now, log } = options;
  return new RecurringWork({
    intervalMs: storageLimits.sweepIntervalMs,
    async work(signal) {
      await removals.run();
      await resumables.removeExpired();
      const before = now() - storageLimits.usedUploadKeptMs;
      while (!signal.aborted && await calls.mutate(system.forgetUsedUploads, { before }));
      await removeAllOrphans(options, signal);
    },
    onError: (error) => log("warn", "Storage cleanup failed", { error }),
  });
}

async function removeAllOrphans(options: CleanupOptions, signal: AbortSignal): Promise<void> {
  const { store, now } = options;
  const oldest = now() - storageLimits.orphanAgeMs;
  const kept = await options.databaseReplacedAt() ?? -Infinity;
  let candidates: string[] = [];
  for await (const { name, writtenAt } of store.list()) {
    if (signal.aborted) return;
    if (writtenAt > oldest || writtenAt <= kept) continue;
    candidates.push(name);
    if (candidates.length < storageLimits.sweptAtOnceMax) continue;
    await removeOrphans(candidates, options);
    candidates = [];
  }
  if (candidates.length > 0) await removeOrphans(candidates, options);
}

async function removeOrphans(blobs: string[], options: CleanupOptions): Promise<void> {
  const { calls, store, isPending, knowsAll, log } = options;
  // Checked before the query: an upload that ends in between has its document already.
  const settled = blobs.filter((blob) => !isPending(blob));
  const orphans = await calls.queryInWriter(system.orphansAmong, { blobs: settled });
  // Checked after the query: files stored by another server since then are not among these.
  if (!knowsAll()) return;
  for (const blob of orphans) await store.remove(blob);
  if (orphans.length > 0) log("info", "Removed orphaned file contents", { count: orphans.length });
}
