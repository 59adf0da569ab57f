/** Cancels a staged restore whose marker, and with it the plan of moves, is damaged. */
import { join } from "node:path";
import { statIfThere } from "../../../kit/durable_files.ts";
import { type BrokenMarkerError, removeMarker } from "./marker.ts";
import {
  acquireStagingLock,
  KEPT_PREFIX,
  MARKER_FILE,
  nameOfPart,
  removeLeftovers,
  removeStagedFolderIfEmpty,
  stagedFolder,
} from "./restore_layout.ts";
import { RestoreError } from "./restore_error.ts";

/** Cancels it if evidently nothing was moved. Otherwise throws a `RestoreError` with instructions. */
export async function cancelBroken(dataDir: string, error: BrokenMarkerError): Promise<void> {
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

/** Whether no swap has moved anything: the database moves first, so every staged one is still where it was unpacked. */
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
