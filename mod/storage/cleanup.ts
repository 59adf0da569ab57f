/** Periodic cleanup: blobs without a document, left by crashes, and obsolete rows. */
import type { SystemCalls } from "../functions/system_calls.ts";
import type { Log } from "../kit/log.ts";
import { RecurringWork } from "../kit/clock.ts";
import { storageLimits } from "./limits.ts";
import type { BlobStore } from "./blobs/blob_store.ts";
import type { Removals } from "./blobs/removals.ts";
import type { ResumableUploads } from "./resumable/uploads.ts";
import { system } from "./system_calls.ts";

export interface CleanupOptions {
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  /** Whether a blob belongs to an unfinished upload. */
  readonly isPending: (blob: string) => boolean;
  readonly removals: Removals;
  readonly resumables: ResumableUploads;
  /** Time of the newest earlier state that is stored, which may reference older blobs; `null` if there is none. */
  readonly asideSince: () => Promise<number | null>;
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
  const kept = await options.asideSince() ?? -Infinity;
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
  const orphans = await calls.query(system.orphansAmong, { blobs: settled });
  // Checked after the query: files stored by another server since then are not among these.
  if (!knowsAll()) return;
  for (const blob of orphans) await store.remove(blob);
  if (orphans.length > 0) log("info", "Removed orphaned file contents", { count: orphans.length });
}
