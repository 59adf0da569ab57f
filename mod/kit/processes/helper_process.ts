/**
 * A child process with few permissions, bounded memory and low priority that ends with the server. It reads requests
 * from standard input and answers on standard output.
 */
import { fileURLToPath } from "node:url";
import { limitedCommand } from "./limited_command.ts";
import { programConfig } from "./program_config.ts";

export interface HelperProcessOptions {
  /** The module to run. */
  readonly entry: URL;
  /** Permission flags of the runtime. */
  readonly permissions: readonly string[];
  /** Private writable memory, in addition to what the runtime reserves. */
  readonly dataMiB: number;
  /** V8 flags that limit its heap. Optional. */
  readonly heapFlags?: string;
  /** As in `nice`. Set by the parent: set from inside it would not apply to all threads. */
  readonly niceness: number;
  readonly stderr: "inherit" | "null";
}

export class HelperProcess {
  readonly #child: Deno.ChildProcess;
  readonly input: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;

  constructor({ entry, permissions, dataMiB, heapFlags, niceness, stderr }: HelperProcessOptions) {
    const { executable, args, env } = limitedCommand(dataMiB, [
      "run",
      "--quiet",
      "--no-prompt",
      "--no-remote",
      "--cached-only",
      "--no-check",
      `--config=${programConfig()}`,
      ...(heapFlags === undefined ? [] : [`--v8-flags=${heapFlags}`]),
      ...permissions,
      fileURLToPath(entry),
    ], { niceness });
    this.#child = new Deno.Command(executable, {
      args: [...args],
      env,
      clearEnv: true,
      stdin: "piped",
      stdout: "piped",
      stderr,
    }).spawn();
    this.input = this.#child.stdin.getWriter();
  }

  get pid(): number {
    return this.#child.pid;
  }

  get output(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return this.#child.stdout;
  }

  /** Resolves when the process has ended. */
  get status(): Promise<Deno.CommandStatus> {
    return this.#child.status;
  }

  kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
  }
}

/** Returns paths as the value of a permission flag. */
export function allowedPaths(paths: readonly string[]): string {
  return paths.map((path) => path.replaceAll(",", ",,")).join(",");
}
