/**
 * Runs commands of the command line with their permissions. One process runs many commands one after the other,
 * because starting it takes longer than most commands. Signals, limits and kills need separate processes.
 */
import { encodeJsonLine } from "../../mod/kit/processes/helper_process.ts";
import { programModule, projectDir } from "./processes/program_module.ts";

const PROGRAM = programModule("tests/support/command_process.ts");

/** Exit code and output of a command. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface CommandEnvironment {
  /** The project's folder when absent. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** All of its standard input. */
  readonly stdin?: string;
}

export type Request = Required<CommandEnvironment> & { readonly args: readonly string[] };

/** By the set of permissions: files that share a process share these, too. */
const all = new Map<string, Commands>();

export class Commands {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #output: ReadableStreamDefaultReader<Uint8Array>;
  /** Resolves when the command before has ended. */
  #last: Promise<unknown> = Promise.resolve();

  /** `set`: the named permissions they run with. For all tests of a file: they end with the last of them. */
  static with(set: string): Commands {
    const commands = all.get(set) ?? new Commands(set);
    all.set(set, commands);
    return commands;
  }

  private constructor(set: string) {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "--quiet", "--no-prompt", `-P=${set}`, PROGRAM],
      cwd: projectDir,
      env: { NO_COLOR: "1" },
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#input = this.#child.stdin.getWriter();
    this.#output = this.#child.stdout.getReader();
    Deno.test.afterAll(() => this.#end());
  }

  run(
    args: readonly string[],
    { cwd = projectDir, env = {}, stdin = "" }: CommandEnvironment = {},
  ): Promise<Ran> {
    const ran = this.#last.then(() => this.#run({ args, cwd, env, stdin }));
    this.#last = ran.catch(() => {});
    return ran;
  }

  async #run(request: Request): Promise<Ran> {
    await this.#input.write(encodeJsonLine(request));
    const decoder = new TextDecoder();
    // Nothing is read ahead: between tests nothing runs.
    for (let line = "";;) {
      const { value, done } = await this.#output.read();
      if (done) throw new Error(`The process ended with "${request.args.join(" ")}"`);
      line += decoder.decode(value, { stream: true });
      if (line.endsWith("\n")) return JSON.parse(line);
    }
  }

  async #end(): Promise<void> {
    await this.#input.close().catch(() => {});
    await this.#output.cancel();
    await this.#child.status;
  }
}
