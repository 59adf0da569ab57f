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
  /**
   * Brings one to a new file of the data folder, whole. Gives whether there is one of this name; throws when it does not
   * come, and leaves no file then.
   */
  bring(name: string, path: string): Promise<boolean>;
  /** Removes one; there may be none. */
  remove(name: string): Promise<void>;
}
