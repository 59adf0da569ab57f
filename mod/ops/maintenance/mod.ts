/** Runs heavy jobs one at a time in a child process, which protects the server from large or hostile data. */
import { ServiceError } from "../../errors.ts";
import type { Log } from "../../kit/log.ts";
import {
  allowedPaths,
  encodeJsonLine,
  HelperProcess,
  readJsonLines,
} from "../../kit/processes/helper_process.ts";
import { entryModule } from "../../kit/processes/program_root.ts";
import type { BackupOptions, BackupSummary } from "../backups/backup.ts";
import { BackupError } from "../backups/backup_error.ts";
import {
  removeAbandonedStaging,
  RestoreError,
  type RestoreFailureCause,
  type StagedArchive,
  type StagedRestore,
} from "../backups/restore/mod.ts";
import { WorkFolder } from "../backups/snapshot/work_folder.ts";
import { opsLimits } from "../limits.ts";

/** Options and result of each kind of job. */
export interface Work {
  readonly backup: { readonly options: BackupOptions; readonly result: BackupSummary };
  readonly stage: {
    readonly options: StagedArchive & { readonly dataDir: string };
    readonly result: StagedRestore;
  };
}

type Kind = keyof Work;

export type Job = { readonly [K in Kind]: { readonly kind: K; readonly options: Work[K]["options"] } }[Kind];

export type Answer =
  | { readonly ok: true; readonly result: Work[Kind]["result"] }
  /** With a `fault` the message is meant for users; otherwise it is a bug or a system failure. */
  | { readonly ok: false; readonly fault: RestoreFailureCause | null; readonly message: string };

/** Reads messages, lines of JSON, until the stream ends. Throws for invalid ones. The process answers one job at a time. */
export async function* readMessages<Message extends Job | Answer>(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<Message> {
  for await (const line of readJsonLines(stream, opsLimits.maintenanceLineCharsMax)) {
    yield JSON.parse(line) as Message;
  }
}

/** The process exited during a job. */
class ProcessEndedError extends Error {
  override readonly name = "ProcessEndedError";
}

export class MaintenanceProcess {
  readonly #child: HelperProcess;
  readonly #answers: AsyncGenerator<Answer>;

  private constructor(folders: readonly string[]) {
    const allowed = allowedPaths(folders);
    this.#child = new HelperProcess({
      entry: entryModule("mod/ops/maintenance/process.ts"),
      permissions: [`--allow-read=${allowed}`, `--allow-write=${allowed}`, "--allow-sys=statfs"],
      dataMiB: opsLimits.maintenanceDataMiB,
      stderr: "inherit",
    });
    this.#answers = readMessages<Answer>(this.#child.output);
  }

  /** Starts a process with access to a data folder, by its given and its real path. */
  static async start(dataDir: string): Promise<MaintenanceProcess> {
    return new MaintenanceProcess([...new Set([dataDir, await Deno.realPath(dataDir)])]);
  }

  /** Runs a job. Throws a `ProcessEndedError` if the process exits, after which it is unusable. */
  async run(job: Job): Promise<Answer> {
    try {
      await this.#child.input.write(encodeJsonLine(job));
      const { value, done } = await this.#answers.next();
      if (done !== true) return value;
    } catch {
      // A broken pipe or invalid output: the process is unusable.
    }
    this.kill();
    const { signal, code } = await this.#child.status;
    throw new ProcessEndedError(signal === null ? `Exit code: ${code}` : `Killed by ${signal}`);
  }

  /** Lets an idle process exit. */
  async close(): Promise<void> {
    await this.#child.input.close().catch(() => {});
    await this.#answers.return(undefined).catch(() => {});
    // The output of a process that never had a job was never read.
    await this.#child.output.cancel().catch(() => {});
    await this.#child.status;
  }

  kill(): void {
    this.#child.kill();
  }
}

export interface MaintenanceOptions {
  /** Absolute path. Jobs have no access outside of it. */
  readonly dataDir: string;
  readonly log: Log;
  /** Idle time after which the process exits. */
  readonly idleMs?: number;
}

export class Maintenance implements AsyncDisposable {
  readonly #dataDir: string;
  readonly #log: Log;
  readonly #idleMs: number;
  #process: MaintenanceProcess | null = null;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  /** Running and queued jobs. */
  #jobs = 0;
  /** Resolves when all jobs so far are done. Never rejects. */
  #last: Promise<unknown>;
  #closed = false;

  constructor({ dataDir, log, idleMs = opsLimits.maintenanceIdleMs }: MaintenanceOptions) {
    this.#dataDir = dataDir;
    this.#log = log;
    this.#idleMs = idleMs;
    this.#last = this.#removeLeftovers();
  }

  /** Creates a backup in the data folder. Throws a `BackupError`, `overloaded`, `unavailable` when stopping, or an `Error`. */
  async backup(options: Omit<BackupOptions, "dataDir">): Promise<BackupSummary> {
    return await this.#run("backup", { ...options, dataDir: this.#dataDir });
  }

  /** Verifies an archive and stages it without its secret key, unless `checkOnly`. Throws a `RestoreError`, or as `backup`. */
  async stage(options: StagedArchive): Promise<StagedRestore> {
    return await this.#run("stage", { ...options, dataDir: this.#dataDir });
  }

  /** Aborts a running job and removes its partial results. */
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
      await this.#removeLeftovers();
      if (this.#closed) throw new ServiceError("unavailable", undefined, { cause: error });
      if (!(error instanceof ProcessEndedError)) throw error;
      const message = `The maintenance process exited before it had finished. ${error.message}`;
      throw failureOf(job.kind, { fault: "server", message });
    }
    if (answer.ok) return answer.result;
    // Neither the archive's nor the operator's fault: reported as an internal failure.
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

  async #removeLeftovers(): Promise<void> {
    for (const remove of [WorkFolder.removeAbandoned, removeAbandonedStaging]) {
      try {
        await remove(this.#dataDir);
      } catch (error) {
        this.#log("warn", "Cannot remove leftovers of an unfinished backup or restore", {
          code: "restore",
          error,
        });
      }
    }
  }
}

function failureOf(
  kind: Kind,
  { fault, message }: { readonly fault: RestoreFailureCause; readonly message: string },
): Error {
  switch (kind) {
    case "backup":
      return Object.assign(new BackupError(message), fault === "room" && { code: "disk_full" });
    case "stage":
      return new RestoreError(message, { fault });
    default:
      return kind satisfies never;
  }
}
