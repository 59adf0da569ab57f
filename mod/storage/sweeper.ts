/** Looks every now and then for what crashes left behind: blobs without a document, and rows nobody needs any more. */
import type { SystemCalls } from "../functions/system_calls.ts";
import type { Log } from "../kit/log.ts";
import { RecurringWork } from "../kit/recurring_work.ts";
import { storageLimits } from "./limits.ts";
import type { BlobStore } from "./blobs/blob_store.ts";
import type { Removals } from "./blobs/removals.ts";
import type { ResumableUploads } from "./resumable/uploads.ts";
import { system } from "./system_calls.ts";

export interface SweeperOptions {
  readonly calls: SystemCalls;
  readonly store: BlobStore;
  /** Whether a blob belongs to an upload that has not ended. */
  readonly isPending: (blob: string) => boolean;
  readonly removals: Removals;
  readonly resumables: ResumableUploads;
  /**
   * When the newest state of the database was put aside that still lies there, `null` when none does. It may name contents
   * written before that which the present state knows nothing of.
   */
  readonly asideSince: () => Promise<number | null>;
  /** Whether no other server can have stored files by now of which this one does not know. */
  readonly knowsAll: () => boolean;
  readonly now: () => number;
  readonly log: Log;
}

/** Begins the sweeps; `run` removes now what nobody needs. */
export function createSweeper(options: SweeperOptions): RecurringWork {
  const { calls, removals, resumables, now, log } = options;
  return new RecurringWork({
    intervalMs: storageLimits.sweepIntervalMs,
    async work(signal) {
      await removals.run();
      await resumables.removeExpired();
      const before = now() - storageLimits.usedUploadKeptMs;
      while (!signal.aborted && await calls.mutate(system.forgetUsedUploads, { before }));
      await sweepOrphans(options, signal);
    },
    onError: (error) => log("warn", "Stored files could not be swept", { error }),
  });
}

async function sweepOrphans(options: SweeperOptions, signal: AbortSignal): Promise<void> {
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

async function removeOrphans(blobs: string[], options: SweeperOptions): Promise<void> {
  const { calls, store, isPending, knowsAll, log } = options;
  // Asked before the look-up: an upload that ends in between has its document by then.
  const settled = blobs.filter((blob) => !isPending(blob));
  const orphans = await calls.query(system.orphansAmong, { blobs: settled });
  // Asked behind the look-up: what another server has stored since is none of these.
  if (!knowsAll()) return;
  for (const blob of orphans) await store.remove(blob);
  if (orphans.length > 0) log("info", "Removed contents that no file has", { count: orphans.length });
}
