/** Port of the targets of scheduled backups (folder, bucket). */

export interface BackupTarget extends AsyncDisposable {
  /** Display name. */
  readonly place: string;
  /** Throws if backups cannot be stored at present. Called before a backup is made. */
  check(): Promise<void>;
  /** Lists scheduled backups: regular files whose names match the pattern exactly. */
  list(): Promise<string[]>;
  /**
   * Stores an archive under a new name, atomically and durably. The local file may be moved.
   */
  put(name: string, path: string): Promise<void>;
  /**
   * Fetches a backup into a new local file. Returns whether the backup exists; throws, removing the file, if the transfer fails.
   */
  fetch(name: string, path: string): Promise<boolean>;
  /** Removes a backup, if it exists. */
  remove(name: string): Promise<void>;
}
