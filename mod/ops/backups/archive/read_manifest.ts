/** Reads the manifest of an archive. */
import { opsLimits } from "../../limits.ts";
import { ArchiveError } from "./frames.ts";
import { archiveNames } from "./entry_names.ts";
import { type ArchiveManifest, parseManifest } from "./manifest.ts";
import { TarReader, wholeEntry } from "./tar_reader.ts";

/** Reads the manifest only, and cancels `source`. Throws an `ArchiveError` if it is not an archive. */
export async function readManifest(source: ReadableStream<Uint8Array>): Promise<ArchiveManifest> {
  await using reader = new TarReader(source);
  return (await firstEntry(reader)).manifest;
}

/** Returns the manifest and its bytes. */
export async function firstEntry(
  reader: TarReader,
): Promise<{ readonly manifest: ArchiveManifest; readonly bytes: Uint8Array }> {
  const entry = await reader.next();
  if (entry === null || entry.name !== archiveNames.manifest) {
    throw new ArchiveError("Not a backup archive: it does not start with a manifest");
  }
  const bytes = await wholeEntry(entry, { bytesMax: opsLimits.archiveManifestBytesMax });
  return { manifest: parseManifest(bytes), bytes };
}
