/** Errors of reading archives. */

/** The archive is damaged, truncated, not a backup, or of a newer format. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

export class UnpackSpaceError extends Error {
  override readonly name = "UnpackRoomError";
  readonly code = "disk_full";
}
