/** The server under test: a real process started as an operator starts it. */
import { join } from "node:path";
import { runtimeEnvironment } from "../../../mod/kit/processes/program.ts";
import { Child, projectDir } from "./child.ts";
import { RawHttp } from "./raw_http.ts";

export interface ServerOptions {
  /** Folder of the database. */
  readonly dataDir: string;
  /** Folder of the app's functions, from the project's folder. */
  readonly functions: string;
  /** Module to start; `main.ts` when left out. */
  readonly entry?: string;
  /** Port to listen on; any free one when left out. */
  readonly port?: number;
  /** Further flags of `serve`. */
  readonly flags?: readonly string[];
  /** Flags for `deno run`, for profiling. */
  readonly runtimeFlags?: readonly string[];
  /** See `ChildOptions`. */
  readonly starter?: readonly string[] | undefined;
  /** Called with each line of its output. */
  readonly onLine?: (line: string) => void;
}

/** A function call's answer over HTTP. */
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

  /** Starts a server and waits until it says where it listens. Throws with its last output when it does not. */
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

  /** Calls a function over HTTP and returns its value. Throws the server's message when it fails. */
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

  /** Its last output: its log. */
  get lastOutput(): string {
    return this.#child.lastOutput;
  }

  stop(): Promise<Deno.CommandStatus> {
    return this.#child.stop();
  }

  /** SIGKILL to the server's main process. */
  kill(): Promise<void> {
    return this.#child.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stop();
  }
}
