/** Errors of creating backups, shown to operators. */

export class BackupError extends Error {
  override readonly name: string = "BackupError";
}

/** The disk of the archive or of the data folder lacks space. */
export class NoSpaceError extends BackupError {
  readonly code = "disk_full";

  constructor(
    { out, dataDir, cause }: { readonly out: string; readonly dataDir: string; readonly cause?: unknown },
  ) {
    super(
      `Not enough disk space for the backup "${out}", or for the temporary copy of the database in ` +
        `"${dataDir}". Free disk space and try again`,
      { cause },
    );
  }
}
