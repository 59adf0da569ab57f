/** Backups that administrators make of a running server. */
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import { isDiskFull, removeIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import type { BackupOptions, BackupSummary } from "./backup.ts";
import type { BackupFolder, StoredBackup } from "./backup_folder.ts";

/** Makes a backup of the data folder into a file. */
export type MakeBackup = (options: Omit<BackupOptions, "dataDir">) => Promise<BackupSummary>;

/** A backup that was just made. */
export interface NewBackup extends StoredBackup {
  /** Files that documents name and that the data folder does not have; 0 when files were not asked for. */
  readonly missingFiles: number;
}

export interface BackupsOptions {
  readonly folder: BackupFolder;
  readonly make: MakeBackup;
  readonly log: Log;
}

export interface WantedBackup {
  readonly includeAux: boolean;
  readonly includeFiles: boolean;
  readonly adminId: string;
}

export class Backups {
  readonly folder: BackupFolder;
  readonly #make: MakeBackup;
  readonly #log: Log;

  constructor({ folder, make, log }: BackupsOptions) {
    this.folder = folder;
    this.#make = make;
    this.#log = log;
  }

  /**
   * Makes one, never with the secret key. Throws `backup_failed` or `disk_full` with the reason, which is for administrators only, and
   * leaves nothing behind then; `overloaded` when too many are waiting.
   */
  async create({ includeAux, includeFiles, adminId }: WantedBackup): Promise<NewBackup> {
    const name = this.folder.newName(new Date());
    const out = join(this.folder.path, name);
    try {
      const options = { out, withAux: includeAux, withFiles: includeFiles, includeSecret: false };
      const { bytes, createdAt, ts, parts, missingFiles } = await this.#make(options);
      this.#log("info", "An administrator made a backup", { adminId, name, bytes, ts, missingFiles });
      return { name, size: bytes, createdAt, ts, parts, missingFiles };
    } catch (error) {
      await removeIfThere(out);
      if (error instanceof ServiceError) throw error;
      this.#log("error", "A backup failed", { error });
      const reason = error instanceof Error ? error.message : String(error);
      const code = isDiskFull(error) ? "disk_full" : "backup_failed";
      throw new ServiceError(code, `The backup could not be made: ${reason}`, { cause: error });
    }
  }
}
