/** The format of backups: a `.tar.zst` archive whose contents are checksummed. */
export { ArchiveError, UnpackRoomError } from "./archive_error.ts";
export { archiveNames } from "./entry_names.ts";
export { extractArchive } from "./extract.ts";
export { packFrames, unpackFrames } from "./frames.ts";
export type { ArchiveManifest, ArchivePart } from "./manifest.ts";
export { readManifest } from "./read_manifest.ts";
export { type ArchiveEntry, writeArchive } from "./write.ts";
