/** The server under test, in a real process. */
import { join } from "node:path";
import { runtimeEnvironment } from "../../../mod/kit/processes/program.ts";
import { Child, projectDir } from "./child.ts";
import { RawHttp } from "./raw_http.ts";

export interface ServerOptions {
  /** Folder of the database. */
  readonly dataDir: string;
  /** Folder of the app's functions, relative to the project. */
  readonly functions: string;
  /** Module to start. Default: `main.ts`. */
  readonly entry?: string;
  /** Port to listen on. Default: a free port. */
  readonly port?: number;
  /** Further flags of `serve`. */
  readonly flags?: readonly string[];
  /** Flags for `deno run`, for profiling. */
  readonly runtimeFlags?: readonly string[];
  /** See `ChildOptions`. */
  readonly starter?: readonly string[] | undefined;
  /** Called with each line of output. */
  readonly onLine?: (line: string) => void;
}

/** A function's answer over HTTP. */
interface CallAnswer {
  readonly status: "success" | "error";
  readonly value?: unknown;
  readonly errorMessage?: string;
}

export class ServerProcess implements AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  readonly exited: Promise<Deno.CommandStatus>;
  readonly #child: Child;

  private constructor(child: Child, port: number) {
    this.#child = child;
    this.port = port;
    this.pid = child.pid;
    this.exited = child.exited;
  }

  /** Starts a server and waits until it listens. Throws with its last output on failure. */
  static async start(options: ServerOptions): Promise<ServerProcess> {
    const child = new Child({
      args: [
        "run",
        "--quiet",
        "--no-prompt",
        "-P=serve",
        ...options.runtimeFlags ?? [],
        options.entry ?? "main.ts",
        "--port",
        String(options.port ?? 0),
        "--data",
        options.dataDir,
        "--functions",
        join(projectDir, options.functions),
        ...options.flags ?? [],
      ],
      // As `deno task serve` sets it.
      env: { ...runtimeEnvironment },
      ...(options.starter && { starter: options.starter }),
      ...(options.onLine && { onLine: options.onLine }),
    });
    try {
      const [, port] = await child.line(/https?:\/\/[\w.[\]:-]*?:(\d+)/);
      return new ServerProcess(child, Number(port));
    } catch (error) {
      await child.kill();
      throw error;
    }
  }

  /** Calls a function over HTTP and returns its value. Throws the server's message if it fails. */
  async call(
    kind: "query" | "mutation",
    udfPath: string,
    args: Record<string, unknown> = {},
  ): Promise<unknown> {
    using connection = await RawHttp.connect(this.port);
    const { body } = await connection.post(`/api/${kind}`, JSON.stringify({ path: udfPath, args }));
    const answer: CallAnswer = JSON.parse(body);
    if (answer.status !== "success") throw new Error(`${udfPath}: ${answer.errorMessage}`);
    return answer.value;
  }

  /** The last lines of its log. */
  get lastOutput(): string {
    return this.#child.lastOutput;
  }

  stop(): Promise<Deno.CommandStatus> {
    return this.#child.stop();
  }

  /** Sends SIGKILL to the server's main process. */
  kill(): Promise<void> {
    return this.#child.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stop();
  }
}
