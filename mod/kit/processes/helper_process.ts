/** A child process with few permissions, bounded memory and low priority. Reads standard input, ends with the server. */
import { fileURLToPath } from "node:url";
import { programConfig, runtimeEnvironment } from "./program.ts";

const encoder = new TextEncoder();

/** Encodes a message between two processes of the server: JSON, one a line. */
export function encodeJsonLine(message: object): Uint8Array<ArrayBuffer> {
  return encoder.encode(`${JSON.stringify(message)}\n`);
}

/** Yields the messages of a stream as JSON strings. Throws a `RangeError` for one longer than `charsMax`. */
export async function* readJsonLines(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  charsMax: number,
): AsyncGenerator<string> {
  let parts: string[] = [];
  let chars = 0;
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      parts.push(text.slice(start, end));
      start = end + 1;
      yield parts.join("");
      parts = [];
      chars = 0;
    }
    if (start === text.length) continue;
    parts.push(text.slice(start));
    chars += text.length - start;
    if (chars > charsMax) throw new RangeError("A message is too long");
  }
}

/** V8 reserves this memory before any code runs. */
const RUNTIME_MIB = 640;

/**
 * Sets a file mode for the owner only and disables core dumps, since both hold the app's data. Signals for the server
 * reach its whole process group (Ctrl-C, a stop by the service manager), so the shell ignores them until the child
 * does. `ulimit -d` has no effect on macOS: see `functions/host/process/memory_watch.ts`. With `setpriv` (Linux) the
 * kernel ends the child with the main process: an isolate in an endless loop does not notice a closed socket, and a
 * writer would hold the database forever.
 */
const SHELL_SCRIPT = `umask 077; trap '' INT TERM HUP; ulimit -c 0; ulimit -d "$0"
if setpriv --pdeathsig KILL true 2>/dev/null; then exec setpriv --pdeathsig KILL "$@"; fi
exec "$@"`;

/** Variables with which the runtime finds its caches and packages. App code cannot see them. */
const INHERITED_VARIABLES = ["HOME", "DENO_DIR", "XDG_CACHE_HOME", "PATH", "NPM_CONFIG_REGISTRY"] as const;

/**
 * `nice` value of processes that queries and mutations do not wait for. Beside one busy process they get a quarter of a
 * processor. With 19 they would get a seventieth, and a thumbnail that takes half a second would exceed its timeout.
 */
export const BACKGROUND_NICENESS = 5;

export interface LimitedCommand {
  readonly executable: string;
  readonly args: readonly string[];
  readonly env: Record<string, string>;
}

/** Returns a command with limited memory that ignores terminal signals and ends with main. `niceness`: see `nice`. */
export function limitedCommand(
  dataMiB: number,
  args: readonly string[],
  { niceness = 0 }: { readonly niceness?: number } = {},
): LimitedCommand {
  const nice = niceness === 0 ? [] : ["nice", "-n", String(niceness)];
  return {
    executable: "sh",
    args: ["-c", SHELL_SCRIPT, String((dataMiB + RUNTIME_MIB) * 1024), ...nice, Deno.execPath(), ...args],
    env: { ...inheritedEnvironment(), ...runtimeEnvironment, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" },
  };
}

function inheritedEnvironment(): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of INHERITED_VARIABLES) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return env;
}

export interface HelperProcessOptions {
  /** The module to run. */
  readonly entry: URL;
  /** Permission flags of the runtime. */
  readonly permissions: readonly string[];
  /** Private writable memory, in addition to what the runtime reserves. */
  readonly dataMiB: number;
  /** V8 flags that limit its heap. Optional. */
  readonly heapFlags?: string;
  /**
   * As in `nice`. Default: {@linkcode BACKGROUND_NICENESS}. Set by the parent: set from inside it would not apply to all
   * threads.
   */
  readonly niceness?: number;
  readonly stderr: "inherit" | "null";
}

export class HelperProcess {
  readonly #child: Deno.ChildProcess;
  readonly input: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;

  constructor(
    { entry, permissions, dataMiB, heapFlags, niceness = BACKGROUND_NICENESS, stderr }: HelperProcessOptions,
  ) {
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
