/** Cancelling a staged restore whose marker is broken, and with it the plan of what is moved where. */
import { join } from "node:path";
import { statIfThere } from "../../../kit/durable_files.ts";
import { type BrokenMarkerError, removeMarker } from "./marker.ts";
import {
  KEPT_PREFIX,
  MARKER_FILE,
  nameOfPart,
  removeLeftovers,
  removeStagedFolderIfEmpty,
  stagedFolder,
  takeStaging,
} from "./places.ts";
import { RestoreError } from "./restore_error.ts";

/** Cancels it when it can be seen that nothing was moved. Throws a `RestoreError` that says what to do otherwise. */
export async function cancelBroken(dataDir: string, error: BrokenMarkerError): Promise<void> {
  using staging = await takeStaging(dataDir);
  if (staging === null) throw new RestoreError("Another restore is being staged: wait until it is");
  if (!await isUntouched(dataDir)) {
    throw new RestoreError(
      `${error.message}, and it cannot be told whether files were moved already. Copy the data folder. Then bring what is ` +
        `in the newest folder ${KEPT_PREFIX}... back to its place, if that restore is not to be, and remove the folder ` +
        `"${stagedFolder(dataDir)}"`,
      { cause: error },
    );
  }
  await removeMarker(dataDir);
  await removeLeftovers(dataDir, { keep: null });
  await removeStagedFolderIfEmpty(dataDir);
}

/**
 * Whether no swap has moved anything. The database is the first that leaves its place, to a folder made for that, and the
 * first that comes in. So nothing was moved while every staged database is where it was unpacked, and the old one is in its
 * place or, where there was none, nothing was ever kept.
 */
async function isUntouched(dataDir: string): Promise<boolean> {
  let folders = 0;
  for await (const { name } of Deno.readDir(stagedFolder(dataDir))) {
    // The marker, and those that were never finished.
    if (name === MARKER_FILE || name.startsWith(".")) continue;
    if (await statIfThere(join(stagedFolder(dataDir), name, nameOfPart.database)) === null) return false;
    folders++;
  }
  if (folders === 0) return false;
  if (await statIfThere(join(dataDir, nameOfPart.database)) !== null) return true;
  for await (const { name } of Deno.readDir(dataDir)) if (name.startsWith(KEPT_PREFIX)) return false;
  return true;
}
