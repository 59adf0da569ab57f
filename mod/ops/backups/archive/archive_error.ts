/** Why an archive cannot be used. */

/** The archive is damaged, cut off, of another program, or too new. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** There is no room on the disk to unpack an archive, which may be a good one. */
export class UnpackRoomError extends Error {
  override readonly name = "UnpackRoomError";
}
