/** Backups that administrators make of a running server, and counters of all its backups. */
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import { isDiskFull, removeIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import type { BackupOptions, BackupSummary } from "./backup.ts";
import type { BackupFolder, StoredBackup } from "./backup_folder.ts";

export interface LastBackup {
  /** Time of the state it contains or earlier, milliseconds since the epoch. */
  readonly at: number;
  /** Duration including the upload; `null` for backups of an earlier process. */
  readonly ms: number | null;
}

/** Counters of a running server's backups, for metrics. */
export class BackupCounts {
  #made = 0;
  #failed = 0;
  #last: LastBackup | null = null;

  /** Since the start. */
  get made(): number {
    return this.#made;
  }

  get failed(): number {
    return this.#failed;
  }

  /** The newest known backup, or `null`. */
  get last(): LastBackup | null {
    return this.#last;
  }

  /** Makes and counts a backup. One aborted by a server stop does not count as failed. */
  async count<Made>(make: () => Promise<Made>): Promise<Made> {
    const at = Date.now();
    const since = performance.now();
    try {
      const made = await make();
      this.#made++;
      this.#last = { at, ms: performance.now() - since };
      return made;
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === "unavailable")) this.#failed++;
      throw error;
    }
  }

  /** Records an existing backup. Until one is made, the newest existing one is the last. */
  found(at: number): void {
    if (this.#made === 0 && at > (this.#last?.at ?? -Infinity)) this.#last = { at, ms: null };
  }
}

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
