/** Applies a staged restore before the database is opened. */
import { join } from "node:path";
import { removeIfThere } from "../../../kit/durable_files.ts";
import { cancelRestore } from "./cancel.ts";
import {
  acquireStagingLock,
  readMarker,
  removeLeftovers,
  removeMarker,
  removeStagedFolderIfEmpty,
  type RestoreMarker,
  restoreOf,
  stagedFolder,
  type StagedRestore,
} from "./marker.ts";
import { type BeforeStep, beginSwap, keepsSomething, swapIn } from "./swap.ts";

export interface AppliedRestore extends StagedRestore {
  /** Folder of the replaced files; `null` if there were none. */
  readonly keptIn: string | null;
}

/**
 * Applies the staged restore or finishes an interrupted one; `null` if there is none. The caller holds the data folder and has
 * nothing in it open. `now` determines the name of the folder for replaced files. Throws a `RestoreError` if it is impossible,
 * and I/O errors, after which another call resumes.
 */
export async function applyStagedRestore(
  dataDir: string,
  now: Date,
  { beforeStep = () => {} }: { readonly beforeStep?: BeforeStep } = {},
): Promise<AppliedRestore | null> {
  const marker = await readMarker(dataDir);
  if (marker === null) {
    await removeAbandonedStaging(dataDir);
    return null;
  }
  if (marker.swap?.direction === "back") {
    await cancelRestore(dataDir, { beforeStep });
    return null;
  }
  const swap = marker.swap ?? await beginSwap(dataDir, marker, { now, beforeStep });
  await swapIn(dataDir, swap, beforeStep);
  await finish(dataDir, marker, beforeStep);
  return { ...restoreOf(marker), keptIn: keepsSomething(swap) ? join(dataDir, swap.keptIn) : null };
}

/** Finishes a restore that was interrupted while being applied. A staged one stays staged. */
export async function finishInterruptedRestore(dataDir: string): Promise<AppliedRestore | null> {
  const marker = await readMarker(dataDir);
  return marker === null || marker.swap === null ? null : await applyStagedRestore(dataDir, new Date());
}

async function finish(dataDir: string, { folder }: RestoreMarker, beforeStep: BeforeStep): Promise<void> {
  // The commit point: until here it can be undone; afterwards only empty folders are left to remove.
  beforeStep("remove marker");
  await removeMarker(dataDir);
  beforeStep("remove staged");
  await removeIfThere(join(stagedFolder(dataDir), folder));
  beforeStep("remove folder");
  await removeStagedFolderIfEmpty(dataDir);
}

/** Removes leftovers, unless a restore is being staged right now. A staged restore is kept. */
export async function removeAbandonedStaging(dataDir: string): Promise<void> {
  using staging = await acquireStagingLock(dataDir);
  if (staging === null) return;
  const marker = await readMarker(dataDir);
  await removeLeftovers(dataDir, { keep: marker?.folder ?? null });
  await removeStagedFolderIfEmpty(dataDir);
}
