/** The execution log in the main thread: records runs cheaply and answers queries. The log worker does the rest. */
import { endingOf, type RunEnd, type RunKind } from "../../functions/host/mod.ts";
import type { Log } from "../../kit/log.ts";
import { logLimits } from "../limits.ts";
import type { RunFilter } from "./run_filter.ts";
import { RunQueue } from "./run_queue.ts";
import { runKinds, runOutcomes } from "./run_record.ts";
import { keptLines, keptPath, levelOf, runError } from "./run_text.ts";
import type { Retention, SavedFigures } from "./store/log_store.ts";
import { LogWorker } from "./worker/log_worker.ts";
import type { BacklogAnswer, LogState, PageAnswer, PageQuestion, TailedMessage } from "./worker/messages.ts";

export interface ExecutionLogOptions {
  readonly path: string;
  readonly retention: Retention;
  /** Page cache size of the database. */
  readonly cacheBytes: number;
  readonly log: Log;
}

export interface TailedRuns {
  /** Encoded stream events, shared by all readers. */
  readonly events: readonly Uint8Array<ArrayBuffer>[];
  /** Number of further matching runs that were skipped. */
  readonly missed: number;
  readonly lastId: number;
}

export interface LogFacts extends LogState {
  /** Runs waiting to be written. */
  readonly queued: number;
  /** Runs dropped since the server started because the queue was full. */
  readonly dropped: number;
}

const nothing = new Uint8Array();

/** Approximate size of a run without log lines and error. */
const RUN_CHARS = 256;

export class ExecutionLog implements AsyncDisposable {
  readonly #worker: LogWorker;
  readonly #queue: RunQueue;
  readonly #tails = new Map<
    number,
    { readonly filter: RunFilter; readonly onRuns: (tailed: TailedRuns) => void }
  >();
  #tailCount = 0;

  constructor(options: ExecutionLogOptions) {
    this.#worker = new LogWorker({
      ...options,
      onStart: () => {
        for (const [tail, { filter }] of this.#tails) void this.#worker.call("tail", tail, filter);
      },
      onTailed: (message) => this.#dispatch(message),
    });
    this.#queue = new RunQueue({
      isOpen: () => this.#worker.running,
      send: async (runs) => await this.#worker.call("store", JSON.stringify(runs)) === true,
    });
  }

  /** Starts the log worker, unless it is running. Runs are queued until then. */
  begin(): void {
    this.#worker.begin();
  }

  /** Records a run. Called often, so it must be fast and must not throw. */
  runEnded(kind: RunKind, { call, outcome, ts, durationMs, queuedMs, use, request }: RunEnd): void {
    const { lines, chars } = keptLines(outcome.logLines);
    const error = outcome.ok ? null : runError(outcome.error);
    const errorChars = error === null ? 0 : error.message.length + (error.stack?.length ?? 0);
    this.#queue.push([
      Date.now(),
      keptPath(call.udfPath),
      runKinds.indexOf(kind),
      call.identity.principal,
      runOutcomes.indexOf(endingOf(outcome)),
      levelOf(lines),
      request,
      ts,
      rounded(durationMs),
      rounded(queuedMs),
      use?.documentsRead ?? 0,
      use?.indexRowsRead ?? 0,
      use?.documentsWritten ?? 0,
      use?.indexRowsWritten ?? 0,
      error,
      lines,
    ], RUN_CHARS + chars + errorChars);
  }

  get facts(): LogFacts {
    const { state } = this.#worker;
    return {
      rows: state?.rows ?? 0,
      bytes: state?.bytes ?? 0,
      lost: state?.lost ?? 0,
      trouble: state?.trouble ?? (this.#worker.running ? null : "The log worker is starting"),
      queued: this.#queue.size,
      dropped: this.#queue.dropped,
    };
  }

  /** Searches runs, including those that ended before the call unless many are queued. Throws `unavailable` and `overloaded`. */
  async page(question: PageQuestion): Promise<PageAnswer> {
    await this.#queue.flush(logLimits.searchFlushMs);
    return await this.#worker.ask("page", { ...question, share: this.#worker.searchShare });
  }

  /** Reports matching runs from now on. Returns a function that stops it. */
  tail(filter: RunFilter, onRuns: (tailed: TailedRuns) => void): () => void {
    const tail = ++this.#tailCount;
    this.#tails.set(tail, { filter, onRuns });
    void this.#worker.call("tail", tail, filter);
    return () => {
      this.#tails.delete(tail);
      void this.#worker.call("untail", tail);
    };
  }

  /** Returns matching runs after a given one, as events. Later runs are reported by a tail with the same filter. */
  async backlog(filter: RunFilter, after: number | null): Promise<BacklogAnswer> {
    await this.#queue.flush(logLimits.searchFlushMs);
    return await this.#worker.ask("backlog", { filter, after, share: this.#worker.searchShare });
  }

  #dispatch({ events, shares, lastId }: TailedMessage): void {
    for (const { tail, events: positions, missed } of shares) {
      const own = positions.map((position) => events[position] ?? nothing);
      this.#tails.get(tail)?.onRuns({ events: own, missed, lastId });
    }
  }

  retain(retention: Retention): void {
    this.#worker.retain(retention);
  }

  saveFigures(figures: readonly SavedFigures[]): void {
    void this.#worker.call("saveFigures", figures);
  }

  async loadFigures(): Promise<readonly SavedFigures[]> {
    return await this.#worker.ask("loadFigures", Date.now());
  }

  /** Flushes queued runs and stops the log worker. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue.close();
    await this.#worker[Symbol.asyncDispose]();
  }
}

/** In hundredths, which keeps the messages short. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
