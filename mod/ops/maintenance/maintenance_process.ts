/** The maintenance process, as main sees it. */
import { fileURLToPath } from "node:url";
import { limitedCommand } from "../../kit/limited_command.ts";
import { opsLimits } from "../limits.ts";
import { type Answer, encodeLine, type Job, readMessages } from "./messages.ts";

/** Queries and mutations go first. */
const NICENESS = 19;

const ENTRY = fileURLToPath(new URL("./process.ts", import.meta.url));
const CONFIG = fileURLToPath(new URL("../../../deno.json", import.meta.url));

/** The process ended over a job. */
export class ProcessEndedError extends Error {
  override readonly name = "ProcessEndedError";
}

export class MaintenanceProcess {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #answers: AsyncGenerator<Answer>;

  private constructor(folders: readonly string[]) {
    const allowed = folders.map((folder) => folder.replaceAll(",", ",,")).join(",");
    const { executable, args, env } = limitedCommand(opsLimits.maintenanceDataMiB, [
      "run",
      "--quiet",
      "--no-prompt",
      "--no-remote",
      "--cached-only",
      "--no-check",
      `--config=${CONFIG}`,
      `--allow-read=${allowed}`,
      `--allow-write=${allowed}`,
      "--allow-sys=statfs",
      ENTRY,
    ], { niceness: NICENESS });
    this.#child = new Deno.Command(executable, {
      args: [...args],
      env,
      clearEnv: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#input = this.#child.stdin.getWriter();
    this.#answers = readMessages<Answer>(this.#child.stdout);
  }

  /** Starts one that may use a data folder, under the name given and under its own. */
  static async start(dataDir: string): Promise<MaintenanceProcess> {
    return new MaintenanceProcess([...new Set([dataDir, await Deno.realPath(dataDir)])]);
  }

  /** Has a job done. Throws a `ProcessEndedError` when the process ends over it; it is of no more use then. */
  async run(job: Job): Promise<Answer> {
    try {
      await this.#input.write(encodeLine(job));
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
    await this.#input.close().catch(() => {});
    await this.#answers.return(undefined).catch(() => {});
    // One that never had a job was never read from.
    await this.#child.stdout.cancel().catch(() => {});
    await this.#child.status;
  }

  kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
  }
}
