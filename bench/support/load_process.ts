/** Runs commands in a separate process, which generates the load. */
import { fileURLToPath } from "node:url";
import type { LoadAnswer, LoadCommands } from "../load/commands.ts";
import { Child } from "../../tests/support/processes/child.ts";

const COMMAND_MS_MAX = 300_000;

export class LoadProcess implements AsyncDisposable {
  readonly #child: Child;

  constructor({ starter = [] }: { readonly starter?: readonly string[] } = {}) {
    this.#child = new Child({
      args: [
        "run",
        "--no-prompt",
        "--allow-net=127.0.0.1",
        fileURLToPath(new URL("../load/main.ts", import.meta.url)),
      ],
      starter,
    });
  }

  /** Runs a command and returns its result. Only one command may run at a time. Throws if the command fails. */
  async run<Name extends keyof LoadCommands>(
    command: Name,
    options: Parameters<LoadCommands[Name]>[0],
  ): Promise<Awaited<ReturnType<LoadCommands[Name]>>> {
    const answered = this.#child.line(/^\{("(result|error)":.*)?\}$/, COMMAND_MS_MAX);
    await this.#child.write(`${JSON.stringify({ command, options })}\n`);
    const answer: LoadAnswer = JSON.parse((await answered)[0]);
    if ("error" in answer) throw new Error(`${command}: ${answer.error}`);
    // The process runs the function of this name in the same table.
    return answer.result as Awaited<ReturnType<LoadCommands[Name]>>;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#child[Symbol.asyncDispose]();
  }
}
