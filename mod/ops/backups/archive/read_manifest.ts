/** Reading the first entry of an archive. */
import { opsLimits } from "../../limits.ts";
import { ArchiveError } from "./archive_error.ts";
import { archiveNames } from "./entry_names.ts";
import { type ArchiveManifest, parseManifest } from "./manifest.ts";
import { TarReader, wholeEntry } from "./tar_reader.ts";

/**
 * The manifest of an archive, of which only the beginning is read and nothing is checked against its sums; `source` is
 * cancelled. Throws an `ArchiveError` when it is no archive.
 */
export async function readManifest(source: ReadableStream<Uint8Array>): Promise<ArchiveManifest> {
  await using reader = new TarReader(source);
  return (await firstEntry(reader)).manifest;
}

/** The manifest with its bytes. */
export async function firstEntry(
  reader: TarReader,
): Promise<{ readonly manifest: ArchiveManifest; readonly bytes: Uint8Array }> {
  const entry = await reader.next();
  if (entry === null || entry.name !== archiveNames.manifest) {
    throw new ArchiveError("This is no backup archive: it does not begin with a manifest");
  }
  const bytes = await wholeEntry(entry, { bytesMax: opsLimits.archiveManifestBytesMax });
  return { manifest: parseManifest(bytes), bytes };
}
