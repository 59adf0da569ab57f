/** The process that makes the load, from the benchmark's side. */
import { fileURLToPath } from "node:url";
import type { LoadAnswer, LoadCommands } from "../load/commands.ts";
import { Child } from "../../tests/support/processes/child.ts";

const COMMAND_MS = 300_000;

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

  /** Runs one command; one at a time. Throws what went wrong there. */
  async run<Name extends keyof LoadCommands>(
    command: Name,
    options: LoadCommands[Name]["takes"],
  ): Promise<LoadCommands[Name]["gives"]> {
    const answered = this.#child.line(/^\{"(result|error)":.*/, COMMAND_MS);
    await this.#child.write(`${JSON.stringify({ command, options })}\n`);
    const answer: LoadAnswer = JSON.parse((await answered)[0]);
    if ("error" in answer) throw new Error(`${command}: ${answer.error}`);
    // The other side answers with what LoadCommands says for this command.
    return answer.result as LoadCommands[Name]["gives"];
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#child[Symbol.asyncDispose]();
  }
}
