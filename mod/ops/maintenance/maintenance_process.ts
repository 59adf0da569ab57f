/** Handle of the maintenance process in the main process. */
import { allowedPaths, HelperProcess } from "../../kit/processes/helper_process.ts";
import { encodeJsonLine } from "../../kit/processes/json_lines.ts";
import { programRoot } from "../../kit/processes/program_root.ts";
import { opsLimits } from "../limits.ts";
import { type Answer, type Job, readMessages } from "./messages.ts";

/** Queries and mutations take precedence. */
const NICENESS = 19;

/** The process exited during a job. */
export class ProcessEndedError extends Error {
  override readonly name = "ProcessEndedError";
}

export class MaintenanceProcess {
  readonly #child: HelperProcess;
  readonly #answers: AsyncGenerator<Answer>;

  private constructor(folders: readonly string[]) {
    const allowed = allowedPaths(folders);
    this.#child = new HelperProcess({
      entry: new URL("mod/ops/maintenance/process.ts", programRoot),
      permissions: [`--allow-read=${allowed}`, `--allow-write=${allowed}`, "--allow-sys=statfs"],
      dataMiB: opsLimits.maintenanceDataMiB,
      niceness: NICENESS,
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
