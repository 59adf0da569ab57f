/** Handle of the log process in the main process: restarts it when lost and sends it queries, answered in order. */
import { ServiceError } from "../../../errors.ts";
import { allowedPaths, HelperProcess } from "../../../kit/processes/helper_process.ts";
import { encodeJsonLine, readJsonLines } from "../../../kit/processes/json_lines.ts";
import type { Log } from "../../../kit/log.ts";
import { programRoot } from "../../../kit/processes/program_root.ts";
import { logLimits } from "../../limits.ts";
import type { Retention } from "../store/log_store.ts";
import type {
  FromLogProcess,
  LogState,
  QuestionKind,
  Questions,
  TailedMessage,
  ToLogProcess,
} from "./messages.ts";

/** Queries and mutations take precedence. */
const NICENESS = 19;

export interface LogProcessOptions {
  /** Absolute path. The process has no access outside of it. */
  readonly dataDir: string;
  /** Path of the log's database. */
  readonly path: string;
  readonly retention: Retention;
  /** Page cache size of the database. */
  readonly cacheBytes: number;
  readonly log: Log;
  /** Called when a process has started, before anything else is sent to it. */
  readonly onStart: () => void;
  readonly onTailed: (message: TailedMessage) => void;
  /** Delays the process until {@linkcode LogProcess.begin} or the first query. */
  readonly waits?: boolean;
}

interface Waiting {
  readonly resolve: (answer: Questions[QuestionKind]["answer"] | null) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

export class LogProcess implements AsyncDisposable {
  readonly #options: LogProcessOptions;
  #retention: Retention;
  #child: HelperProcess | null = null;
  readonly #waiting = new Map<number, Waiting>();
  #asks = 0;
  #state: LogState | null = null;
  /** Runs lost by earlier processes. */
  #lostBefore = 0;
  #closed = false;
  #endPause: (() => void) | null = null;
  readonly #begun = Promise.withResolvers<void>();
  /** Resolves when the first process has started or failed to, or will not be started. */
  readonly #there = Promise.withResolvers<void>();
  readonly #running: Promise<void>;

  constructor(options: LogProcessOptions) {
    this.#options = options;
    this.#retention = options.retention;
    if (options.waits !== true) this.begin();
    this.#running = this.#begun.promise.then(() => this.#run());
  }

  /** State of the log; `null` before the process has reported it. */
  get state(): LogState | null {
    return this.#state === null ? null : { ...this.#state, lost: this.#state.lost + this.#lostBefore };
  }

  /** Whether a process is running. */
  get alive(): boolean {
    return this.#child !== null;
  }

  /** Starts the first process, unless it is running. */
  begin(): void {
    this.#begun.resolve();
  }

  /** Resolves when the process can accept more input; `false` if it was lost or is not running. */
  async send(message: ToLogProcess): Promise<boolean> {
    try {
      if (this.#child === null) return false;
      await this.#child.input.write(encodeJsonLine(message));
      return true;
    } catch {
      // The exit is handled by the reading side.
      return false;
    }
  }

  /** Throws `unavailable` if no process can answer, and `overloaded` for too many queries. */
  async ask<K extends QuestionKind>(kind: K, asked: Questions[K]["asked"]): Promise<Questions[K]["answer"]> {
    this.begin();
    if (this.#waiting.size >= logLimits.questionsMax) throw new ServiceError("overloaded");
    const ask = ++this.#asks;
    const answer = new Promise<Questions[QuestionKind]["answer"] | null>((resolve) => {
      const timer = setTimeout(() => this.#timedOut(ask), logLimits.answerMs);
      this.#waiting.set(ask, { resolve, timer });
    });
    void this.#there.promise.then(() => this.send({ type: "Ask", ask, kind, asked } as ToLogProcess))
      .then((taken) => taken || this.#answer(ask, null));
    const given = await answer;
    if (given === null) throw new ServiceError("unavailable", "The execution log is currently unavailable");
    return given as Questions[K]["answer"];
  }

  retain(retention: Retention): void {
    this.#retention = retention;
    void this.send({ type: "Retain", retention });
  }

  /** Stops the process after it has handled all input. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.begin();
    this.#there.resolve();
    this.#endPause?.();
    const child = this.#child;
    if (child !== null) {
      const late = setTimeout(() => child.kill(), logLimits.answerMs);
      await child.input.close().catch(() => {});
      await this.#running;
      clearTimeout(late);
    }
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#closed; failures++) {
      const since = performance.now();
      const reason = await this.#runOne().catch((error) => String(error)).finally(() =>
        this.#there.resolve()
      );
      if (this.#closed) return;
      if (performance.now() - since > logLimits.restartMsMax) failures = 0;
      this.#options.log("warn", "Log process exited, restarting", { reason });
      await this.#pause(Math.min(logLimits.restartMsMax, logLimits.restartMs * 2 ** failures));
    }
  }

  /** Runs one process until it exits; returns the reason. */
  async #runOne(): Promise<string> {
    const { dataDir, path, cacheBytes, onStart } = this.#options;
    const folders = [...new Set([dataDir, await Deno.realPath(dataDir)])];
    if (this.#closed) return "asked";
    const child = new HelperProcess({
      entry: new URL("mod/ops/log/process/process.ts", programRoot),
      permissions: [`--allow-read=${allowedPaths(folders)}`, `--allow-write=${allowedPaths(folders)}`],
      dataMiB: logLimits.processDataMiB,
      niceness: NICENESS,
      stderr: "inherit",
    });
    this.#child = child;
    this.#there.resolve();
    void this.send({ type: "Start", path, retention: this.#retention, cacheBytes });
    onStart();
    let nonsense: string | null = null;
    try {
      for await (const line of readJsonLines(child.output, logLimits.messageCharsMax)) {
        this.#take(JSON.parse(line) as FromLogProcess);
      }
    } catch (error) {
      nonsense = error instanceof Error ? error.message : String(error);
      child.kill();
    }
    const { code, signal } = await child.status;
    this.#child = null;
    this.#lostBefore += this.#state?.lost ?? 0;
    if (this.#state !== null) this.#state = { ...this.#state, lost: 0 };
    await child.input.abort().catch(() => {});
    for (const ask of [...this.#waiting.keys()]) this.#answer(ask, null);
    return nonsense ?? (signal === null ? `code ${code}` : signal);
  }

  #take(message: FromLogProcess): void {
    switch (message.type) {
      case "Answer":
        return this.#answer(message.ask, message.answer);
      case "Tailed":
        return this.#options.onTailed(message);
      case "State":
        this.#state = message.state;
        return;
      case "Say":
        return this.#options.log(
          message.level,
          message.message,
          message.reason === "" ? {} : {
            reason: message.reason,
          },
        );
      default:
        message satisfies never;
    }
  }

  #answer(ask: number, answer: Questions[QuestionKind]["answer"] | null): void {
    const waiting = this.#waiting.get(ask);
    if (waiting === undefined) return;
    this.#waiting.delete(ask);
    clearTimeout(waiting.timer);
    waiting.resolve(answer);
  }

  /** Kills a process that may be stuck in a damaged file or an unresponsive disk. */
  #timedOut(ask: number): void {
    this.#options.log("warn", "Log process is not responding");
    if (this.#child === null) this.#answer(ask, null);
    else this.#child.kill();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
