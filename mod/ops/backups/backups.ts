/** Backups that administrators make of a running server. */
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import { isDiskFull, removeIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import type { BackupOptions, BackupSummary } from "./backup.ts";
import type { BackupFolder, StoredBackup } from "./backup_folder.ts";

/** Creates a backup of the data folder in a file. */
export type MakeBackup = (options: Omit<BackupOptions, "dataDir">) => Promise<BackupSummary>;

export interface NewBackup extends StoredBackup {
  /** Number of files that documents reference but the data folder lacks; 0 without files. */
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
   * Creates a backup without the secret key. Throws `backup_failed` or `disk_full` with the reason, which only administrators
   * may see, or `overloaded`; then leaves no files.
   */
  async create({ includeAux, includeFiles, adminId }: WantedBackup): Promise<NewBackup> {
    const name = this.folder.newName(new Date());
    const out = join(this.folder.path, name);
    try {
      const options = { out, withAux: includeAux, withFiles: includeFiles, includeSecret: false };
      const { bytes, createdAt, ts, parts, missingFiles } = await this.#make(options);
      this.#log("info", "Backup created", { adminId, name, bytes, ts, missingFiles });
      return { name, size: bytes, createdAt, ts, parts, missingFiles };
    } catch (error) {
      await removeIfThere(out);
      if (error instanceof ServiceError) throw error;
      this.#log("error", "Backup failed", { code: "backup", error });
      const reason = error instanceof Error ? error.message : String(error);
      const code = isDiskFull(error) ? "disk_full" : "backup_failed";
      throw new ServiceError(code, `Cannot create the backup: ${reason}`, { cause: error });
    }
  }
}
