/** Passed to each group of rows: the options of the run, and methods that start processes and create folders. */
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { Child, type ChildOptions } from "../tests/support/processes/child.ts";
import { type ServerOptions, ServerProcess } from "../tests/support/processes/server_process.ts";
import { LoadProcess } from "./support/load_process.ts";

/** Functions of most rows. */
export const benchFunctions = "bench/functions";
/** Functions of the public "transfer" benchmark. */
export const transferFunctions = "examples/transfer/functions";
/** Functions of the rows about files. */
export const storageFunctions = "tests/storage/functions";

/** The entry point of `deno task serve`. */
const entry = "mod/build/start.ts";

const CONTROL_START_MS_MAX = 30_000;

export interface BenchOptions {
  readonly full: boolean;
  /** Parent of the folders that the rows use. */
  readonly dir: string;
  /** With 1, servers and controls share one processor and clients use another. Otherwise all processes share all of them. */
  readonly cores?: number | undefined;
}

/** A bare server that Syncline is compared with. */
export interface Control {
  readonly port: number;
  readonly pid: number;
}

/** Owns the processes it starts and stops them when it is disposed. */
export class BenchContext implements AsyncDisposable {
  /** Whether to run the long form of each row. */
  readonly full: boolean;
  readonly #cores: number | undefined;
  readonly #dir: string;
  readonly #opened = new AsyncDisposableStack();
  #folders = 0;

  constructor({ full, dir, cores }: BenchOptions) {
    this.full = full;
    this.#cores = cores;
    this.#dir = dir;
  }

  /** Creates an empty folder. */
  folder(): string {
    const path = join(this.#dir, String(++this.#folders));
    Deno.mkdirSync(path, { recursive: true });
    return path;
  }

  async server(
    functions: string,
    { starter = [], dataDir = this.folder(), ...options }: Partial<Omit<ServerOptions, "functions">> = {},
  ): Promise<ServerProcess> {
    const pinned = [...this.#onProcessor(0), ...starter];
    return this.#opened.use(
      await ServerProcess.start({ entry, ...options, functions, dataDir, starter: pinned }),
    );
  }

  /** Starts one of the servers in `controls/`. */
  async control(
    name: "websocket_server" | "sqlite_server" | "two_process_server" | "file_server" | "live_server",
    args: readonly (string | number)[] = [],
  ): Promise<Control> {
    const dir = this.folder();
    const child = this.process({
      args: [
        "run",
        "--no-prompt",
        `--allow-net=127.0.0.1,unix:${join(dir, "control.db.socket")}`,
        "--allow-run=deno",
        `--allow-read=${dir}`,
        `--allow-write=${dir}`,
        fileURLToPath(new URL(`./controls/${name}.ts`, import.meta.url)),
        join(dir, "control.db"),
        ...args.map(String),
      ],
    });
    const [, port] = await child.line(/^port (\d+)$/, CONTROL_START_MS_MAX);
    return { port: Number(port), pid: child.pid };
  }

  /** Starts a program on the processor of the servers. */
  process(options: Omit<ChildOptions, "starter">): Child {
    return this.#opened.use(new Child({ ...options, starter: this.#onProcessor(0) }));
  }

  load(): LoadProcess {
    return this.#opened.use(new LoadProcess({ starter: this.#onProcessor(1) }));
  }

  /** Creates a context for a part of a group, to stop its processes before the next part. */
  inner(cores = this.#cores): BenchContext {
    return this.#opened.use(new BenchContext({ full: this.full, dir: this.folder(), cores }));
  }

  /** Creates an inner context whose processes share all processors. */
  unpinned(): BenchContext {
    return this.inner(0);
  }

  #onProcessor(processor: number): readonly string[] {
    return this.#cores === 1 ? ["taskset", "-c", String(processor)] : [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}
