/** Applying a staged restore: while nothing is open, before the database is. */
import { join } from "node:path";
import { removeIfThere } from "../../../kit/durable_files.ts";
import { cancelRestore } from "./cancel.ts";
import { readMarker, removeMarker, type RestoreMarker, restoreOf, type StagedRestore } from "./marker.ts";
import { removeStagedFolderIfEmpty, stagedFolder } from "./places.ts";
import { type BeforeStep, beginSwap, keepsSomething, swapIn } from "./swap.ts";
import { removeAbandonedStaging } from "./tidy.ts";

/** A restore that has been applied. */
export interface AppliedRestore extends StagedRestore {
  /** Folder of the files it replaced; `null` when there were none. */
  readonly keptIn: string | null;
}

/**
 * Applies the staged restore, or finishes one that was interrupted; `null` when there is none. The caller holds the data
 * folder and nothing in it is open. `now` names the folder of the files that are replaced. Throws a `RestoreError`
 * when it cannot be done, and whatever a disk may come up with: called again, it goes on where it was.
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

/** Finishes a restore that was interrupted while it was being applied; one that only waits goes on waiting. */
export async function finishInterruptedRestore(dataDir: string): Promise<AppliedRestore | null> {
  const marker = await readMarker(dataDir);
  return marker === null || marker.swap === null ? null : await applyStagedRestore(dataDir, new Date());
}

async function finish(dataDir: string, { folder }: RestoreMarker, beforeStep: BeforeStep): Promise<void> {
  // The last step that counts: until here it can be undone, after it there are only empty folders to remove.
  beforeStep("remove marker");
  await removeMarker(dataDir);
  beforeStep("remove staged");
  await removeIfThere(join(stagedFolder(dataDir), folder));
  beforeStep("remove folder");
  await removeStagedFolderIfEmpty(dataDir);
}
