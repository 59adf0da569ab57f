/** Where scheduled backups go: the port that the folder and the bucket implement. */

export interface BackupTarget extends AsyncDisposable {
  /** For people. */
  readonly place: string;
  /** Throws when no backup can be put there now, before one is made in vain. */
  check(): Promise<void>;
  /** Names of the scheduled backups there: names of exactly that pattern, and nothing but files. */
  list(): Promise<string[]>;
  /**
   * Brings an archive there under its name, which is new: whole and durable when this resolves, not there at all when it
   * throws. The file may be gone then.
   */
  put(name: string, path: string): Promise<void>;
  /** Removes one; there may be none. */
  remove(name: string): Promise<void>;
}
