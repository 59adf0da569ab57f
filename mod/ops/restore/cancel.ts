/** Cancelling a staged restore, also one that was interrupted while it was being applied. */
import { join } from "node:path";
import { removeIfThere } from "../../kit/durable_files.ts";
import { readMarker, removeMarker } from "./marker.ts";
import { removeStagedFolderIfEmpty, stagedFolder } from "./places.ts";
import { type BeforeStep, swapBack } from "./swap.ts";

/**
 * Takes back a staged restore. One whose files were being swapped when its process ended is undone; then the data folder
 * has to be held and nothing in it open. Gives `false` when nothing is staged.
 */
export async function cancelRestore(
  dataDir: string,
  { beforeStep = () => {} }: { readonly beforeStep?: BeforeStep } = {},
): Promise<boolean> {
  const marker = await readMarker(dataDir);
  if (marker === null) return false;
  if (marker.swap !== null) await swapBack(dataDir, marker, beforeStep);
  beforeStep("remove marker");
  await removeMarker(dataDir);
  beforeStep("remove staged");
  await removeIfThere(join(stagedFolder(dataDir), marker.folder));
  await removeStagedFolderIfEmpty(dataDir);
  return true;
}
