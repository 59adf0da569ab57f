/** Cleanup after a process that was killed while staging a restore. */
import { readMarker } from "./marker.ts";
import { acquireStagingLock, removeLeftovers, removeStagedFolderIfEmpty } from "./places.ts";

/** Removes leftovers, unless a restore is being staged right now. A staged restore is kept. */
export async function removeAbandonedStaging(dataDir: string): Promise<void> {
  using staging = await acquireStagingLock(dataDir);
  if (staging === null) return;
  const marker = await readMarker(dataDir);
  await removeLeftovers(dataDir, { keep: marker?.folder ?? null });
  await removeStagedFolderIfEmpty(dataDir);
}
