/** Handle of the log worker in the main thread: starts and restarts it, and sends it requests, answered in order. */
import { ServiceError } from "../../../errors.ts";
import type { Log } from "../../../kit/log.ts";
import { programRoot } from "../../../kit/processes/program_root.ts";
import { logLimits } from "../../limits.ts";
import type { Retention } from "../store/log_store.ts";
import type {
  Answer,
  FromLogWorker,
  LogState,
  QuestionKind,
  Questions,
  TailedMessage,
  ToLogWorker,
} from "./messages.ts";

export interface LogWorkerOptions {
  /** Path of the log's database. */
  readonly path: string;
  readonly retention: Retention;
  /** Page cache size of the database. */
  readonly cacheBytes: number;
  readonly log: Log;
  /** Called when a worker has started, before anything else is sent to it. */
  readonly onStart: () => void;
  readonly onTailed: (message: TailedMessage) => void;
}

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

export class LogWorker implements AsyncDisposable {
  readonly #options: LogWorkerOptions;
  #retention: Retention;
  #worker: Worker | null = null;
  readonly #waiting = new Map<number, Waiting>();
  #asks = 0;
  #state: LogState | null = null;
  /** Runs lost by earlier workers. */
  #lostBefore = 0;
  /** Restarts in a row. */
  #failures = 0;
  #startedAt = 0;
  #restart: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  constructor(options: LogWorkerOptions) {
    this.#options = options;
    this.#retention = options.retention;
  }

  /** State of the log; `null` before the worker has reported it. */
  get state(): LogState | null {
    return this.#state === null ? null : { ...this.#state, lost: this.#state.lost + this.#lostBefore };
  }

  get running(): boolean {
    return this.#worker !== null;
  }

  /** Starts the worker, unless it is running or about to be restarted. */
  begin(): void {
    if (this.#worker !== null || this.#restart !== null || this.#closed) return;
    const worker = new Worker(new URL("mod/ops/log/worker/main.ts", programRoot), {
      type: "module",
      name: "log",
    });
    worker.onmessage = ({ data }: MessageEvent<FromLogWorker>) => this.#take(data);
    worker.onerror = (event) => {
      // An error of the worker must not end the server.
      event.preventDefault();
      if (worker === this.#worker) this.#failed(event.message);
    };
    this.#worker = worker;
    this.#startedAt = performance.now();
    const { path, cacheBytes, onStart } = this.#options;
    this.post({ type: "Start", path, retention: this.#retention, cacheBytes });
    onStart();
  }

  /** Sends a message, if the worker is running. */
  post(message: ToLogWorker): void {
    this.#worker?.postMessage(message);
  }

  /** Throws `unavailable` if the log cannot be read, and `overloaded` for too many requests. */
  async ask<K extends QuestionKind>(kind: K, asked: Questions[K]["asked"]): Promise<Questions[K]["answer"]> {
    this.begin();
    if (this.#waiting.size >= logLimits.questionsMax) throw new ServiceError("overloaded");
    const answer = this.#worker === null ? null : await this.#answerTo(kind, asked);
    if (answer === null) throw new ServiceError("unavailable", "The execution log is currently unavailable");
    return answer as Questions[K]["answer"];
  }

  /** Stores runs, given as JSON. Resolves with `false` if they were lost with the worker. */
  async store(runs: string): Promise<boolean> {
    return this.#worker !== null && await this.#answerTo("runs", runs) !== null;
  }

  retain(retention: Retention): void {
    this.#retention = retention;
    this.post({ type: "Retain", retention });
  }

  /** Stops the worker after it has handled all messages. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    if (this.#restart !== null) clearTimeout(this.#restart);
    if (this.#worker !== null) await this.#answerTo("close", null);
    this.#worker?.terminate();
    this.#worker = null;
  }

  #answerTo<K extends QuestionKind>(kind: K, asked: Questions[K]["asked"]): Promise<Answer> {
    const ask = ++this.#asks;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#failed("It is not responding"), logLimits.answerMs);
      this.#waiting.set(ask, { resolve, timer });
      this.post({ type: "Ask", ask, kind, asked } as ToLogWorker);
    });
  }

  /** Replaces a worker that failed, or that waits for an unresponsive disk. */
  #failed(reason: string): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#lostBefore += this.#state?.lost ?? 0;
    if (this.#state !== null) this.#state = { ...this.#state, lost: 0 };
    for (const ask of [...this.#waiting.keys()]) this.#answer(ask, null);
    if (this.#closed) return;
    const { restartMs, restartMsMax } = logLimits;
    this.#failures = performance.now() - this.#startedAt > restartMsMax ? 0 : this.#failures + 1;
    this.#options.log("warn", "Log worker failed, restarting", { reason });
    this.#restart = setTimeout(() => {
      this.#restart = null;
      this.begin();
    }, Math.min(restartMsMax, restartMs * 2 ** this.#failures));
  }

  #take(message: FromLogWorker): void {
    switch (message.type) {
      case "Answer":
        return this.#answer(message.ask, message.answer);
      case "Tailed":
        return this.#options.onTailed(message);
      case "State":
        this.#state = message.state;
        return;
      case "Say": {
        const { level, message: text, reason } = message;
        return this.#options.log(level, text, reason === "" ? {} : { reason });
      }
      default:
        message satisfies never;
    }
  }

  #answer(ask: number, answer: Answer): void {
    const waiting = this.#waiting.get(ask);
    if (waiting === undefined) return;
    this.#waiting.delete(ask);
    clearTimeout(waiting.timer);
    waiting.resolve(answer);
  }
}
