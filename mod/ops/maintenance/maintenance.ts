/**
 * Has heavy work done in a process of its own, so that neither a large database nor a hostile archive costs the server more
 * than that process. It is started with the first job and ends when it has had nothing to do for a while. One job at a time;
 * the rest wait, up to a bound.
 */
import { ServiceError } from "../../errors.ts";
import type { Log } from "../../kit/log.ts";
import { opsLimits } from "../limits.ts";
import type { BackupOptions, BackupSummary } from "../backups/backup.ts";
import { BackupError } from "../backups/backup_error.ts";
import {
  removeAbandonedStaging,
  RestoreError,
  type RestoreFault,
  type StagedRestore,
} from "../backups/restore/mod.ts";
import { WorkFolder } from "../backups/snapshot/work_folder.ts";
import { MaintenanceProcess, ProcessEndedError } from "./maintenance_process.ts";
import type { Answer, Job, Kind, Work } from "./messages.ts";

export interface MaintenanceOptions {
  /** Absolute. Jobs may use no file outside of it. */
  readonly dataDir: string;
  readonly log: Log;
  /** After how long without a job the process ends. */
  readonly idleMs?: number;
}

export class Maintenance implements AsyncDisposable {
  readonly #dataDir: string;
  readonly #log: Log;
  readonly #idleMs: number;
  #process: MaintenanceProcess | null = null;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  /** Jobs under way or waiting. */
  #jobs = 0;
  /** Ends when everything asked for so far is done; never rejects. Set by each job, and when the process is let go. */
  #last: Promise<unknown>;
  #closed = false;

  constructor({ dataDir, log, idleMs = opsLimits.maintenanceIdleMs }: MaintenanceOptions) {
    this.#dataDir = dataDir;
    this.#log = log;
    this.#idleMs = idleMs;
    this.#last = this.#tidy();
  }

  /**
   * Makes a backup, to a path in the data folder. Throws a `BackupError` with the reason, `overloaded` when too many jobs
   * wait, `unavailable` when the server stops, and an `Error` for a bug or trouble with the machine.
   */
  async backup(options: Omit<BackupOptions, "dataDir">): Promise<BackupSummary> {
    return await this.#run("backup", { ...options, dataDir: this.#dataDir });
  }

  /**
   * Checks an archive in the data folder completely and stages it, without its secret key; `checkOnly` stages nothing. Throws a `RestoreError` with the
   * reason and whose trouble it is, and all else as `backup` does.
   */
  async stage(
    options: { readonly archive: string; readonly source: string; readonly checkOnly?: boolean },
  ): Promise<StagedRestore> {
    return await this.#run("stage", { ...options, dataDir: this.#dataDir });
  }

  /** Ends a job under way; nothing half is left of it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#idleTimer);
    this.#process?.kill();
    await this.#last;
    await this.#process?.close();
  }

  #run<K extends Kind>(kind: K, options: Work[K]["options"]): Promise<Work[K]["result"]> {
    if (this.#closed) throw new ServiceError("unavailable");
    if (this.#jobs >= opsLimits.maintenanceJobsMax) throw new ServiceError("overloaded");
    this.#jobs++;
    clearTimeout(this.#idleTimer);
    const done = this.#last.then(() => this.#do({ kind, options } as Job)).finally(() => this.#ended());
    this.#last = done.catch(() => {});
    return done as Promise<Work[K]["result"]>;
  }

  async #do(job: Job): Promise<Work[Kind]["result"]> {
    if (this.#closed) throw new ServiceError("unavailable");
    const process = this.#process ??= await MaintenanceProcess.start(this.#dataDir);
    // It may have been closed while the process was starting.
    if (this.#closed) throw new ServiceError("unavailable");
    let answer: Answer;
    try {
      answer = await process.run(job);
    } catch (error) {
      this.#process = null;
      await process.close();
      await this.#tidy();
      if (this.#closed) throw new ServiceError("unavailable", undefined, { cause: error });
      if (!(error instanceof ProcessEndedError)) throw error;
      const message = `The process that did the work ended before it was done. ${error.message}`;
      throw failureOf(job.kind, { fault: "server", message });
    }
    if (answer.ok) return answer.result;
    // Not for the archive or the operator to blame: who asked tells it as trouble of the server's own.
    const { fault, message } = answer;
    throw fault === null ? new Error(message) : failureOf(job.kind, { fault, message });
  }

  #ended(): void {
    this.#jobs--;
    if (this.#jobs > 0 || this.#closed) return;
    this.#idleTimer = setTimeout(() => {
      const process = this.#process;
      this.#process = null;
      if (process !== null) this.#last = this.#last.then(() => process.close());
    }, this.#idleMs);
  }

  /** Removes what a job left behind that was killed. */
  async #tidy(): Promise<void> {
    for (const remove of [WorkFolder.removeAbandoned, removeAbandonedStaging]) {
      try {
        await remove(this.#dataDir);
      } catch (error) {
        this.#log("warn", "What an unfinished backup or restore left behind could not be removed", { error });
      }
    }
  }
}

function failureOf(
  kind: Kind,
  { fault, message }: { readonly fault: RestoreFault; readonly message: string },
): Error {
  switch (kind) {
    case "backup":
      return new BackupError(message);
    case "stage":
      return new RestoreError(message, { fault });
    default:
      return kind satisfies never;
  }
}
