/** The maintenance process, as main sees it. */
import { allowedPaths, HelperProcess } from "../../kit/processes/helper_process.ts";
import { encodeJsonLine } from "../../kit/processes/json_lines.ts";
import { programRoot } from "../../kit/processes/program_root.ts";
import { opsLimits } from "../limits.ts";
import { type Answer, type Job, readMessages } from "./messages.ts";

/** Queries and mutations go first. */
const NICENESS = 19;

/** The process ended over a job. */
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

  /** Starts one that may use a data folder, under the name given and under its own. */
  static async start(dataDir: string): Promise<MaintenanceProcess> {
    return new MaintenanceProcess([...new Set([dataDir, await Deno.realPath(dataDir)])]);
  }

  /** Has a job done. Throws a `ProcessEndedError` when the process ends over it; it is of no more use then. */
  async run(job: Job): Promise<Answer> {
    try {
      await this.#child.input.write(encodeJsonLine(job));
      const { value, done } = await this.#answers.next();
      if (done !== true) return value;
    } catch {
      // A pipe that broke, or a text that is no answer: it is no good.
    }
    this.kill();
    const { signal, code } = await this.#child.status;
    throw new ProcessEndedError(signal === null ? `It ended with code ${code}` : `It was ended by ${signal}`);
  }

  /** Lets it end, when it has nothing to do. */
  async close(): Promise<void> {
    await this.#child.input.close().catch(() => {});
    await this.#answers.return(undefined).catch(() => {});
    // One that never had a job was never read from.
    await this.#child.output.cancel().catch(() => {});
    await this.#child.status;
  }

  kill(): void {
    this.#child.kill();
  }
}
