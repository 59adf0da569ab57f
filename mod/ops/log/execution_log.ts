/**
 * The execution log in the main process: records each function run and serves queries of administrators. Recording is cheap;
 * all other work is done by the log process, which nothing waits for.
 */
import { endingOf, type RunEnd, type RunKind } from "../../functions/host/mod.ts";
import type { Log } from "../../kit/log.ts";
import { LogProcess } from "./process/log_process.ts";
import type { BacklogAnswer, LogState, PageAnswer, PageQuestion, TailedMessage } from "./process/messages.ts";
import { packMessage } from "./packs/run_pack.ts";
import type { RunFilter } from "./run_filter.ts";
import { RunQueue } from "./run_queue.ts";
import { runKinds, runOutcomes } from "./run_record.ts";
import { keptLines, keptPath, levelOf, runError } from "./run_text.ts";
import type { Retention, SavedFigures } from "./store/log_store.ts";

export interface ExecutionLogOptions {
  /** Absolute path. */
  readonly dataDir: string;
  /** Path of the log's database in the data folder. */
  readonly path: string;
  readonly retention: Retention;
  /** Page cache size of the database. */
  readonly cacheBytes: number;
  /** Delays the log process until {@linkcode ExecutionLog.begin}; runs are queued. */
  readonly waits?: boolean;
  readonly log: Log;
}

/** Runs reported to a tail. */
export interface TailedRuns {
  /** Encoded stream events, shared by all readers. */
  readonly events: readonly Uint8Array<ArrayBuffer>[];
  /** Number of further matching runs that were skipped. */
  readonly missed: number;
  /** ID of the newest run considered. */
  readonly lastId: number;
}

/** State of the log. */
export interface LogFacts extends LogState {
  /** Runs waiting to be written. */
  readonly queued: number;
  /** Runs dropped since the server started because the queue was full. */
  readonly dropped: number;
}

const encoder = new TextEncoder();
const nothing = new Uint8Array();

/** Approximate size of a run without log lines and error. */
const RUN_CHARS = 256;

export class ExecutionLog implements AsyncDisposable {
  readonly #process: LogProcess;
  readonly #queue: RunQueue;
  readonly #tails = new Map<
    number,
    { readonly filter: RunFilter; readonly onRuns: (tailed: TailedRuns) => void }
  >();
  #tailCount = 0;

  constructor(options: ExecutionLogOptions) {
    this.#process = new LogProcess({
      ...options,
      onStart: () => {
        for (const [tail, { filter }] of this.#tails) void this.#process.send({ type: "Tail", tail, filter });
      },
      onTailed: (message) => this.#dispatch(message),
    });
    this.#queue = new RunQueue({
      open: () => this.#process.alive,
      send: (pack) => this.#process.send({ type: "Runs", pack: packMessage(pack) }),
    });
  }

  /** Starts the log process, unless it is running. */
  begin(): void {
    this.#process.begin();
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
      durationMs,
      queuedMs,
      use?.documentsRead ?? 0,
      use?.indexRowsRead ?? 0,
      use?.documentsWritten ?? 0,
      use?.indexRowsWritten ?? 0,
      error,
      lines,
    ], RUN_CHARS + chars + errorChars);
  }

  get facts(): LogFacts {
    const { state } = this.#process;
    return {
      rows: state?.rows ?? 0,
      bytes: state?.bytes ?? 0,
      lost: state?.lost ?? 0,
      trouble: state?.trouble ?? (this.#process.alive ? null : "The log process is starting"),
      queued: this.#queue.size,
      dropped: this.#queue.dropped,
    };
  }

  /** Searches runs, including all that ended before the call. Throws `unavailable` and `overloaded`. */
  async page(question: PageQuestion): Promise<PageAnswer> {
    await this.#queue.flush();
    return await this.#process.ask("page", question);
  }

  /** Reports matching runs from now on. Returns a function that stops it. */
  tail(filter: RunFilter, onRuns: (tailed: TailedRuns) => void): () => void {
    const tail = ++this.#tailCount;
    this.#tails.set(tail, { filter, onRuns });
    void this.#process.send({ type: "Tail", tail, filter });
    return () => {
      this.#tails.delete(tail);
      void this.#process.send({ type: "Untail", tail });
    };
  }

  /** Returns matching runs after a given one, as events. Later runs are reported by a tail with the same filter. */
  async backlog(filter: RunFilter, after: number | null): Promise<BacklogAnswer> {
    await this.#queue.flush();
    return await this.#process.ask("backlog", { filter, after });
  }

  #dispatch({ events, told, lastId }: TailedMessage): void {
    const encoded = events.map((event) => encoder.encode(event));
    for (const share of told) {
      const tailed = {
        events: share.events.map((position) => encoded[position] ?? nothing),
        missed: share.missed,
        lastId,
      };
      for (const tail of share.tails) this.#tails.get(tail)?.onRuns(tailed);
    }
  }

  retain(retention: Retention): void {
    this.#process.retain(retention);
  }

  saveFigures(figures: readonly SavedFigures[]): void {
    void this.#process.send({ type: "SaveFigures", figures });
  }

  async loadFigures(): Promise<readonly SavedFigures[]> {
    return await this.#process.ask("figures", { now: Date.now() });
  }

  /** Flushes queued runs and stops the log process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue.close();
    await this.#process[Symbol.asyncDispose]();
  }
}
