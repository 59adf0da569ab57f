/**
 * A process of ours beside the server: it has few rights, bounded memory, goes behind queries and mutations, and ends with
 * the server. It is spoken to on its standard input and answers on its standard output.
 */
import { fileURLToPath } from "node:url";
import { limitedCommand } from "./limited_command.ts";
import { ownConfig } from "./own_config.ts";

export interface HelperProcessOptions {
  /** The module that it runs. */
  readonly entry: URL;
  /** What it may do, as flags of the runtime. */
  readonly permissions: readonly string[];
  /** Private writable memory, above what the runtime itself reserves. */
  readonly dataMiB: number;
  /** Flags of V8, which keep its heap small; its own when absent. */
  readonly heapFlags?: string;
  /** How far other processes go first, as `nice` counts it. Set from outside: from inside it would miss its threads. */
  readonly niceness: number;
  /** What becomes of what it says on standard error. */
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
      `--config=${ownConfig()}`,
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

  /** Resolves when it has ended. */
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

/** Paths as a permission flag takes them. */
export function allowedPaths(paths: readonly string[]): string {
  return paths.map((path) => path.replaceAll(",", ",,")).join(",");
}
