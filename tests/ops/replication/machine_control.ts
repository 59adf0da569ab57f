/**
 * Delays of a process that writes a small file now and then, as the one that ships does: how late its timers fire,
 * and how long the disk takes.
 */
import { fileURLToPath } from "node:url";
import { Child } from "../../support/processes/child.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { until } from "../../support/waiting.ts";

/** One file written, from when it was due to when it was on the disk. */
export interface Turn {
  /** ms since the epoch. */
  readonly dueAt: number;
  readonly ms: number;
}

const PROGRAM = fileURLToPath(new URL("./machine_control_process.ts", import.meta.url));
/** As that of the process that ships. */
const NICENESS = "5";
const TURNS_KEPT = 2_000;

export class MachineControl implements AsyncDisposable {
  readonly #folder: TempFolder;
  readonly #child: Child;
  readonly #turns: Turn[] = [];

  private constructor() {
    this.#folder = new TempFolder();
    const { path } = this.#folder;
    this.#child = new Child({
      starter: ["nice", "-n", NICENESS],
      args: [
        ...["run", "--quiet", "--no-prompt", "--no-check", `--allow-read=${path}`, `--allow-write=${path}`],
        ...[PROGRAM, path],
      ],
      onLine: (line) => {
        const [, dueAt, ms] = /^turn (\S+) (\S+)$/.exec(line) ?? [];
        if (dueAt !== undefined) this.#turns.push({ dueAt: Number(dueAt), ms: Number(ms) });
        if (this.#turns.length > TURNS_KEPT) this.#turns.shift();
      },
    });
  }

  static async start(): Promise<MachineControl> {
    const control = new MachineControl();
    try {
      // Throws when the process ends.
      await control.#child.line(/^turn /);
      return control;
    } catch (error) {
      await control[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Its turns up to a time, and the one behind it. */
  async turnsUntil(at: number): Promise<readonly Turn[]> {
    await until(() => (this.#turns.at(-1)?.dueAt ?? 0) > at, { what: "the control has another turn" });
    return [...this.#turns];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.kill();
    await this.#folder[Symbol.asyncDispose]();
  }
}
