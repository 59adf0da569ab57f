/** What a process left of a restore that it was staging when it was killed. */
import { readMarker } from "./marker.ts";
import { removeLeftovers, removeStagedFolderIfEmpty, takeStaging } from "./places.ts";

/** Removes it, unless a restore is being staged right now. What is staged stays. */
export async function removeAbandonedStaging(dataDir: string): Promise<void> {
  using staging = await takeStaging(dataDir);
  if (staging === null) return;
  const marker = await readMarker(dataDir);
  await removeLeftovers(dataDir, { keep: marker?.folder ?? null });
  await removeStagedFolderIfEmpty(dataDir);
}
