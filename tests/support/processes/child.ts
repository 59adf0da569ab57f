/** A child process of the benchmark or a test, by default of Deno, with its output as lines. Killed when it is disposed. */
import { HANG_MS } from "../waiting.ts";
import { lines } from "./lines.ts";
import { programModule, projectDir } from "./program_module.ts";

export { projectDir };

export interface ChildOptions {
  /** The program. Default: `deno`. */
  readonly command?: string;
  readonly args: readonly string[];
  readonly env?: Record<string, string>;
  /** A prefix of the command. Optional. */
  readonly starter?: readonly string[];
  /** Called with each line of standard output and standard error. */
  readonly onLine?: (line: string) => void;
}

const TAIL_LINES = 50;
const TAIL_CHARS = 300;
const encoder = new TextEncoder();

/** Replaces an entry point with its bundle. */
function inProgram(arg: string): string {
  return arg === "main.ts" || arg === "cli.ts" ? programModule(arg) : arg;
}

export class Child implements AsyncDisposable {
  readonly pid: number;
  /** Resolves when the process has ended and its output has been read. */
  readonly exited: Promise<Deno.CommandStatus>;
  readonly #process: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array<ArrayBufferLike>>;
  readonly #reading: Promise<unknown>;
  #waiting: { readonly pattern: RegExp; readonly found: (match: RegExpExecArray) => void }[] = [];
  /** Last lines, for error messages. */
  readonly #tail: string[] = [];

  constructor(options: ChildOptions) {
    const own = [options.command ?? "deno", ...options.args.map(inProgram)] as const;
    const [command = own[0], ...args] = [...options.starter ?? [], ...own];
    this.#process = new Deno.Command(command, {
      args,
      cwd: projectDir,
      env: { NO_COLOR: "1", ...options.env },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.pid = this.#process.pid;
    this.#stdin = this.#process.stdin.getWriter();
    this.#stdin.closed.catch(() => {});
    const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
      for await (const line of lines(stream)) {
        options.onLine?.(line);
        this.#tail.push(line.slice(0, TAIL_CHARS));
        if (this.#tail.length > TAIL_LINES) this.#tail.shift();
        this.#waiting = this.#waiting.filter(({ pattern, found }) => {
          const match = pattern.exec(line);
          if (match !== null) found(match);
          return match === null;
        });
      }
    };
    this.#reading = Promise.allSettled([read(this.#process.stdout), read(this.#process.stderr)]);
    this.exited = this.#reading.then(() => this.#process.status);
  }

  /** The last lines of output. */
  get lastOutput(): string {
    return this.#tail.join("\n");
  }

  /** Returns the next line that matches. Throws with the last output if the process ends or the timeout passes first. */
  async line(pattern: RegExp, timeoutMs = HANG_MS): Promise<RegExpExecArray> {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    this.#waiting.push({ pattern, found: resolve });
    const fail = (why: string) => reject(new Error(`${why}; last output:\n${this.lastOutput}`));
    const timer = setTimeout(() => fail(`No line like ${pattern} within ${timeoutMs} ms`), timeoutMs);
    this.#reading.then(() => fail(`The process ended before a line like ${pattern}`));
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  async write(text: string): Promise<void> {
    await this.#stdin.write(encoder.encode(text));
  }

  /** Stops the process with a signal, and kills it after `graceMs`. */
  async stop(graceMs = 30_000): Promise<Deno.CommandStatus> {
    this.#signal("SIGTERM");
    const timer = setTimeout(() => this.#signal("SIGKILL"), graceMs);
    const status = await this.exited;
    clearTimeout(timer);
    await this[Symbol.asyncDispose]();
    return status;
  }

  /** Sends SIGKILL. */
  async kill(): Promise<void> {
    this.#signal("SIGKILL");
    await this[Symbol.asyncDispose]();
  }

  #signal(signal: Deno.Signal): void {
    try {
      this.#process.kill(signal);
    } catch {
      // It has already ended.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#signal("SIGKILL");
    await this.exited;
    await this.#stdin.close().catch(() => {});
  }
}
