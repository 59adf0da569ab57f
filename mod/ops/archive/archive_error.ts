/** Why an archive cannot be used. */

/** The archive is damaged, cut off, of another program, too new, or larger than what the disk can take. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}
