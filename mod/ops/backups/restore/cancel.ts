/** Cancels a staged restore, even one that was interrupted while being applied. */
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { removeIfThere, statIfThere } from "../../../kit/durable_files.ts";
import { opsLimits } from "../../limits.ts";
import {
  acquireStagingLock,
  BrokenMarkerError,
  KEPT_PREFIX,
  MARKER_FILE,
  nameOfPart,
  readMarker,
  removeLeftovers,
  removeMarker,
  removeStagedFolderIfEmpty,
  RestoreError,
  type RestoreMarker,
  stagedFolder,
} from "./marker.ts";
import { type BeforeStep, swapBack } from "./swap.ts";

/** Cancels it if evidently nothing was moved. Otherwise throws a `RestoreError` with instructions. */
async function cancelBroken(dataDir: string, error: BrokenMarkerError): Promise<void> {
  using staging = await acquireStagingLock(dataDir);
  if (staging === null) throw new RestoreError("Another restore is being staged. Wait until it has finished");
  if (!await isUntouched(dataDir)) {
    throw new RestoreError(
      `${error.message}, and it is unknown whether files were moved already. Copy the data folder first. To undo the restore, move the files in ` +
        `the newest folder ${KEPT_PREFIX}... back to the data folder. Then remove the folder ` +
        `"${stagedFolder(dataDir)}"`,
      { cause: error },
    );
  }
  await removeMarker(dataDir);
  await removeLeftovers(dataDir, { keep: null });
  await removeStagedFolderIfEmpty(dataDir);
}

/** Whether no swap has begun. The database moves first, so each staged one, and an old one, is still in its folder. */
async function isUntouched(dataDir: string): Promise<boolean> {
  let folders = 0;
  for await (const { name } of Deno.readDir(stagedFolder(dataDir))) {
    // The marker and unfinished temporary markers.
    if (name === MARKER_FILE || name.startsWith(".")) continue;
    if (await statIfThere(join(stagedFolder(dataDir), name, nameOfPart.database)) === null) return false;
    folders++;
  }
  if (folders === 0) return false;
  if (await statIfThere(join(dataDir, nameOfPart.database)) !== null) return true;
  for await (const { name } of Deno.readDir(dataDir)) if (name.startsWith(KEPT_PREFIX)) return false;
  return true;
}

export interface CancelOptions {
  readonly beforeStep?: BeforeStep;
  /** Cancels only the restore staged at this time, ISO 8601. By default, whichever is staged. */
  readonly stagedAt?: string | undefined;
  /** How long to wait for another restore that is being staged, in milliseconds. */
  readonly waitMs?: number;
}

/**
 * Cancels the staged restore. A restore interrupted while swapping files is undone; then the caller must hold the data folder
 * and have nothing in it open. Returns `false` if nothing is staged, or another restore than `stagedAt` names. Throws a
 * `RestoreError` if another restore is staged in the meantime, or is still being staged.
 */
export async function cancelRestore(
  dataDir: string,
  { beforeStep = () => {}, stagedAt, waitMs = opsLimits.stagingWaitMs }: CancelOptions = {},
): Promise<boolean> {
  let asked: RestoreMarker | null;
  try {
    asked = await readMarker(dataDir);
  } catch (error) {
    // Which restore a broken marker staged is unknown.
    if (!(error instanceof BrokenMarkerError) || stagedAt !== undefined) throw error;
    await cancelBroken(dataDir, error);
    return true;
  }
  if (asked === null || (stagedAt !== undefined && asked.stagedAt !== stagedAt)) return false;
  const givesUpAt = performance.now() + waitMs;
  for (;;) {
    {
      using staging = await acquireStagingLock(dataDir);
      const marker = await readMarker(dataDir);
      if (marker === null) return false;
      if (marker.folder !== asked.folder) {
        throw new RestoreError(
          `The restore of "${marker.source}" has replaced that of "${asked.source}" in the meantime. ` +
            "Check the staged restore, and cancel it if it is not wanted either",
        );
      }
      if (staging !== null) {
        await cancel(dataDir, marker, beforeStep);
        return true;
      }
    }
    if (performance.now() >= givesUpAt) {
      throw new RestoreError(
        "Another restore is being staged. Wait until it has finished, then check the staged restore",
      );
    }
    beforeStep("wait");
    await wait(opsLimits.lockPollMs);
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
