/** Cancelling a staged restore, also one that was interrupted while it was being applied. */
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { removeIfThere } from "../../../kit/durable_files.ts";
import { opsLimits } from "../../limits.ts";
import { cancelBroken } from "./broken_marker.ts";
import { BrokenMarkerError, readMarker, removeMarker, type RestoreMarker } from "./marker.ts";
import { removeStagedFolderIfEmpty, stagedFolder, takeStaging } from "./places.ts";
import { RestoreError } from "./restore_error.ts";
import { type BeforeStep, swapBack } from "./swap.ts";

export interface CancelOptions {
  readonly beforeStep?: BeforeStep;
  /** How long, in milliseconds, another restore that is being staged is waited for. */
  readonly waitMs?: number;
}

/**
 * Takes back the restore that is staged when this is called. One whose files were being swapped when its process ended is
 * undone; then the data folder has to be held and nothing in it open. Gives `false` when nothing is staged. Throws a
 * `RestoreError` when another restore takes its place meanwhile, or goes on being staged.
 */
export async function cancelRestore(
  dataDir: string,
  { beforeStep = () => {}, waitMs = opsLimits.stagingWaitMs }: CancelOptions = {},
): Promise<boolean> {
  let asked: RestoreMarker | null;
  try {
    asked = await readMarker(dataDir);
  } catch (error) {
    if (!(error instanceof BrokenMarkerError)) throw error;
    await cancelBroken(dataDir, error);
    return true;
  }
  if (asked === null) return false;
  const givesUpAt = performance.now() + waitMs;
  for (;;) {
    {
      using staging = await takeStaging(dataDir);
      const marker = await readMarker(dataDir);
      if (marker === null) return false;
      if (marker.folder !== asked.folder) {
        throw new RestoreError(
          `The restore of "${marker.source}" was staged in the place of that of "${asked.source}" meanwhile: ` +
            "look at what is staged, and cancel that if it is not wanted either",
        );
      }
      if (staging !== null) {
        await cancel(dataDir, marker, beforeStep);
        return true;
      }
    }
    if (performance.now() >= givesUpAt) {
      throw new RestoreError(
        "Another restore is being staged: wait until it is, then look at what is staged",
      );
    }
    beforeStep("wait");
    await wait(opsLimits.heldLookMs);
  }
}

async function cancel(dataDir: string, marker: RestoreMarker, beforeStep: BeforeStep): Promise<void> {
  if (marker.swap !== null) await swapBack(dataDir, marker, beforeStep);
  beforeStep("remove marker");
  await removeMarker(dataDir);
  beforeStep("remove staged");
  await removeIfThere(join(stagedFolder(dataDir), marker.folder));
  await removeStagedFolderIfEmpty(dataDir);
}
