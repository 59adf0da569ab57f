/** Why a backup cannot be made, for the operator. */

export class BackupError extends Error {
  override readonly name: string = "BackupError";
}

/** There is no room on a disk: that of the archive, or that of the data folder. */
export class NoRoomError extends BackupError {
  constructor(
    { out, dataDir, cause }: { readonly out: string; readonly dataDir: string; readonly cause?: unknown },
  ) {
    super(
      `There is no room on the disk for the backup "${out}", or for the copy of the database that it needs meanwhile in ` +
        `"${dataDir}": free some, and try again`,
      { cause },
    );
  }
}
