/** Handle of the log worker in the main thread: starts and restarts it, and calls its methods in order. */
import { ServiceError } from "../../../errors.ts";
import type { Log } from "../../../kit/log.ts";
import { entryModule } from "../../../kit/processes/program_root.ts";
import { logLimits } from "../../limits.ts";
import type { Retention } from "../store/log_store.ts";
import type {
  FromLogWorker,
  LogMethod,
  LogMethods,
  LogState,
  TailedMessage,
  ToLogWorker,
} from "./messages.ts";

export interface LogWorkerOptions {
  readonly path: string;
  readonly retention: Retention;
  readonly log: Log;
  /** Called when a worker has started, before anything else is sent to it. */
  readonly onStart: () => void;
  readonly onTailed: (message: TailedMessage) => void;
}

interface Waiting {
  readonly resolve: (answer: unknown) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

export class LogWorker implements AsyncDisposable {
  readonly #options: LogWorkerOptions;
  #retention: Retention;
  #worker: Worker | null = null;
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;
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

  /** Part of the search timeout for the next search: searches that wait for each other share it. */
  get searchShare(): number {
    return Math.max(logLimits.searchShareMin, 1 / (1 + this.#waiting.size));
  }

  get running(): boolean {
    return this.#worker !== null;
  }

  /** Starts the worker, unless it is running or about to be restarted. */
  begin(): void {
    if (this.#worker !== null || this.#restart !== null || this.#closed) return;
    const worker = new Worker(entryModule("mod/ops/log/worker/main.ts"), {
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
    const { path, onStart } = this.#options;
    this.#post({ type: "Start", path, retention: this.#retention });
    onStart();
  }

  /** Calls a method for a user. Throws `unavailable` if the log cannot be read, and `overloaded` for too many calls. */
  async ask<M extends LogMethod>(
    method: M,
    ...args: Parameters<LogMethods[M]>
  ): Promise<NonNullable<ReturnType<LogMethods[M]>>> {
    this.begin();
    if (this.#waiting.size >= logLimits.questionsMax) throw new ServiceError("overloaded");
    const answer = await this.call(method, ...args);
    if (answer === null) throw new ServiceError("unavailable", "The execution log is currently unavailable");
    return answer as NonNullable<ReturnType<LogMethods[M]>>;
  }

  /** Calls a method. Resolves with `null` if it returns nothing, or if the worker is not running or fails. */
  async call<M extends LogMethod>(
    method: M,
    ...args: Parameters<LogMethods[M]>
  ): Promise<ReturnType<LogMethods[M]> | null> {
    if (this.#worker === null) return null;
    const call = ++this.#calls;
    return await new Promise<unknown>((resolve) => {
      const timer = setTimeout(() => this.#failed("It is not responding"), logLimits.answerMs);
      this.#waiting.set(call, { resolve, timer });
      this.#post({ type: "Call", call, method, args });
    }) as ReturnType<LogMethods[M]> | null;
  }

  retain(retention: Retention): void {
    this.#retention = retention;
    void this.call("retain", retention);
  }

  /** Stops the worker after it has handled all messages. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    if (this.#restart !== null) clearTimeout(this.#restart);
    await this.call("close");
    this.#worker?.terminate();
    this.#worker = null;
  }

  #post(message: ToLogWorker): void {
    this.#worker?.postMessage(message);
  }

  /** Replaces a worker that failed, or that waits for an unresponsive disk. */
  #failed(reason: string): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#lostBefore += this.#state?.lost ?? 0;
    if (this.#state !== null) this.#state = { ...this.#state, lost: 0 };
    for (const call of [...this.#waiting.keys()]) this.#answer(call, null);
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
        return this.#answer(message.call, message.answer);
      case "Tailed":
        return this.#options.onTailed(message);
      case "State":
        this.#state = message.state;
        return;
      case "Log": {
        const { level, message: text, reason } = message;
        return this.#options.log(level, text, reason === "" ? {} : { reason });
      }
      default:
        message satisfies never;
    }
  }

  #answer(call: number, answer: unknown): void {
    const waiting = this.#waiting.get(call);
    if (waiting === undefined) return;
    this.#waiting.delete(call);
    clearTimeout(waiting.timer);
    waiting.resolve(answer);
  }
}
