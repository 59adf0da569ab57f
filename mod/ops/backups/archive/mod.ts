/** Backup archive format: a checksummed `.tar.zst`. */
export { ArchiveError, packFrames, unpackFrames, UnpackSpaceError } from "./frames.ts";
export { archiveNames } from "./entry_names.ts";
export { extractArchive } from "./extract.ts";
export type { ArchiveManifest, ArchivePart } from "./manifest.ts";
export { readManifest } from "./read_manifest.ts";
export { type ArchiveEntry, writeArchive } from "./write.ts";
