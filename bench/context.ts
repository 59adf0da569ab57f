/** Passed to each row of the benchmark: its duration, and helpers that start processes and folders. */
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { Child, type ChildOptions } from "../tests/support/processes/child.ts";
import { LoadProcess } from "./support/load_process.ts";
import { type ServerOptions, ServerProcess } from "../tests/support/processes/server_process.ts";

/** Functions the rows other than the transfers call. */
export const benchFunctions = "bench/functions";
/** The public benchmark's functions. */
export const transferFunctions = "examples/transfer/functions";

/** Functions of the rows about files. */
export const storageFunctions = "tests/storage/functions";

export type ControlName =
  | "websocket_server"
  | "sqlite_server"
  | "two_process_server"
  | "file_server"
  | "live_server";

export interface BenchOptions {
  readonly full: boolean;
  readonly dir: string;
  /** With 1, servers and controls have one processor to themselves, and their clients another; else all share all. */
  readonly cores?: number | undefined;
}

/** A control: a bare server beside ours. */
export interface Control {
  readonly port: number;
  readonly pid: number;
}

/** As `deno task serve` starts it. */
const entry = "mod/build/start.ts";

export class BenchContext implements AsyncDisposable {
  /** Whether there is time for the long form of each row. */
  readonly full: boolean;
  readonly #cores: number | undefined;
  readonly #dir: string;
  readonly #opened = new AsyncDisposableStack();
  #folders = 0;

  constructor(options: BenchOptions) {
    this.full = options.full;
    this.#cores = options.cores;
    this.#dir = options.dir;
  }

  /** A new empty folder on a real disk. */
  folder(): string {
    const path = join(this.#dir, String(++this.#folders));
    Deno.mkdirSync(path, { recursive: true });
    return path;
  }

  /** Starts a server that ends with the row. */
  async server(functions: string, dataDir = this.folder()): Promise<ServerProcess> {
    return this.#opened.use(
      await ServerProcess.start({ entry, dataDir, functions, starter: this.#onProcessor(0) }),
    );
  }

  /** Starts a server with further flags that ends with the row. */
  async serverWith(flags: readonly string[], functions: string): Promise<ServerProcess> {
    return await this.serverAs({ functions, flags });
  }

  /** Starts a server as it is said that ends with the row. */
  async serverAs(
    { starter = [], dataDir = this.folder(), ...options }:
      & Omit<ServerOptions, "dataDir">
      & { readonly dataDir?: string },
  ): Promise<ServerProcess> {
    const all = [...this.#onProcessor(0), ...starter];
    return this.#opened.use(await ServerProcess.start({ entry, ...options, dataDir, starter: all }));
  }

  /** A context whose processes end before this one's. */
  inner(cores = this.#cores): BenchContext {
    return this.#opened.use(new BenchContext({ full: this.full, dir: this.folder(), cores }));
  }

  /** One whose processes share all processors. */
  unpinned(): BenchContext {
    return this.inner(0);
  }

  /** Command that starts a process on the processor of the servers. */
  get serverStarter(): readonly string[] {
    return this.#onProcessor(0);
  }

  /** Starts another program, on the processor of the servers, that ends with the row. */
  process(options: Omit<ChildOptions, "starter">): Child {
    return this.#opened.use(new Child({ ...options, starter: this.#onProcessor(0) }));
  }

  load(): LoadProcess {
    return this.#opened.use(new LoadProcess({ starter: this.#onProcessor(1) }));
  }

  /** Starts one of the control servers and returns its port. */
  async control(name: ControlName, args: readonly string[] = []): Promise<number> {
    return (await this.controlProcess(name, args)).port;
  }

  /** Starts one of the control servers. */
  async controlProcess(name: ControlName, args: readonly string[] = []): Promise<Control> {
    const dir = this.folder();
    const child = this.#opened.use(
      new Child({
        args: [
          "run",
          "--no-prompt",
          `--allow-net=127.0.0.1,unix:${join(dir, "control.db.socket")}`,
          "--allow-run=deno",
          `--allow-read=${dir}`,
          `--allow-write=${dir}`,
          fileURLToPath(new URL(`./controls/${name}.ts`, import.meta.url)),
          join(dir, "control.db"),
          ...args,
        ],
        starter: this.#onProcessor(0),
      }),
    );
    return { port: Number((await child.line(/^port (\d+)$/, 30_000))[1]), pid: child.pid };
  }

  #onProcessor(processor: number): readonly string[] {
    return this.#cores === 1 ? ["taskset", "-c", String(processor)] : [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}

/** Waits. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
