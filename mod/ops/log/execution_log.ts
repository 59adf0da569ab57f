/** The execution log in the main thread: records runs cheaply and answers queries. The log worker does the rest. */
import { endingOf, type RunEnd, type RunKind } from "../../functions/host/mod.ts";
import type { CallError } from "../../functions/outcome.ts";
import type { Log } from "../../kit/log.ts";
import { functionLimits } from "../../limits.ts";
import { logLimits } from "../limits.ts";
import type { RunFilter } from "./run_filter.ts";
import { LoggedArguments } from "./logged_arguments.ts";
import { ARGS_MARK, lineLevels, type RunError, runKinds, runOutcomes, type RunRecord } from "./run_record.ts";
import type { Retention, SavedFigures } from "./store/log_store.ts";
import { LogWorker } from "./worker/log_worker.ts";
import type { BacklogAnswer, LogState, PageAnswer, PageQuestion, TailedMessage } from "./worker/messages.ts";

export interface RunQueueOptions {
  /** Stores runs; resolves with `false` if they were lost. */
  readonly send: (runs: readonly RunRecord[]) => Promise<boolean>;
  /** Whether a worker is running. */
  readonly isOpen: () => boolean;
}

/** Bounded queue of runs for the log worker; counts dropped ones. */
export class RunQueue {
  readonly #options: RunQueueOptions;
  /** Oldest first; the last one is not complete. */
  readonly #batches: { readonly runs: RunRecord[]; chars: number }[] = [];
  /** Totals of all batches. */
  #size = 0;
  #chars = 0;
  #dropped = 0;
  /** Set while runs wait for the next send. */
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** Set while runs are being sent. */
  #sending: Promise<void> | null = null;
  #closed = false;

  constructor(options: RunQueueOptions) {
    this.#options = options;
  }

  /** Runs dropped because the queue was full or the worker was lost. */
  get dropped(): number {
    return this.#dropped;
  }

  get size(): number {
    return this.#size;
  }

  push(run: RunRecord, chars: number): void {
    const { queuedRunsMax, queuedCharsMax, batchRunsMax, batchCharsMax } = logLimits;
    if (this.#size >= queuedRunsMax || this.#chars + chars > queuedCharsMax || this.#closed) {
      this.#dropped++;
      return;
    }
    let batch = this.#batches.at(-1);
    if (
      batch === undefined || batch.runs.length >= batchRunsMax ||
      batch.chars + chars > batchCharsMax
    ) {
      this.#batches.push(batch = { runs: [], chars: 0 });
    }
    batch.runs.push(run);
    batch.chars += chars;
    this.#size++;
    this.#chars += chars;
    if (this.#timer === null) this.#schedule();
  }

  /** Sends all queued runs. Resolves when they are stored or cannot be, at the latest after `msMax`. */
  async flush(msMax = Infinity): Promise<void> {
    const all = (async () => {
      await this.#sending;
      await this.#begin();
    })();
    if (msMax === Infinity) return await all;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, msMax);
    await Promise.race([all, late]);
    clearTimeout(timer);
  }

  /** Sends queued runs for a limited time, and accepts no more. */
  async close(ms: number = logLimits.closeMs): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const late = setTimeout(() => {
      this.#dropped += this.#size;
      this.#batches.length = this.#size = this.#chars = 0;
    }, ms);
    await this.flush();
    clearTimeout(late);
  }

  #schedule(): void {
    if (this.#timer !== null || this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#sending === null && this.#options.isOpen()) void this.#begin();
      else this.#schedule();
    }, logLimits.flushMs);
  }

  #begin(): Promise<void> {
    return this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
      if (this.#size > 0) this.#schedule();
    });
  }

  async #send(): Promise<void> {
    for (let left = this.#batches.length; left > 0 && this.#options.isOpen(); left--) {
      const next = this.#batches.shift();
      if (next === undefined) return;
      this.#size -= next.runs.length;
      this.#chars -= next.chars;
      if (!await this.#options.send(next.runs)) this.#dropped += next.runs.length;
    }
  }
}

const noLines: readonly string[] = Object.freeze([]);

/** Returns the lines within the limit, and their number of characters. */
export function keptLines(
  lines: readonly string[],
): { readonly lines: readonly string[]; readonly chars: number } {
  if (lines.length === 0) return { lines: noLines, chars: 0 };
  let chars = 0;
  for (const [position, line] of lines.entries()) {
    chars += line.length;
    if (chars <= logLimits.linesCharsMax) continue;
    const kept = lines.slice(0, position);
    const left = lines.length - position;
    kept.push(
      `[WARN] ${left} more log lines were truncated (limit: ${logLimits.linesCharsMax} characters per run)`,
    );
    return { lines: kept, chars };
  }
  return { lines, chars };
}

/** Returns the highest level: index of `lineLevels` plus one, or 0 without lines. */
export function levelOf(lines: readonly string[]): number {
  let level = 0;
  for (const line of lines) {
    const found = lineLevels.findIndex((name) => line.startsWith(`[${name}]`)) + 1;
    if (found > level) level = found;
  }
  return level;
}

/** Returns the error of a run for the log; long parts are truncated and marked. */
export function runError({ kind, message, data, stack }: CallError): RunError {
  return {
    kind,
    message: cut(message),
    ...(data !== null && { code: cut(data.code) }),
    ...(stack !== undefined && { stack: cut(stack) }),
  };
}

/** Truncates a function path, which may be made up by a client. */
export function keptPath(udfPath: string): string {
  return cut(udfPath, logLimits.pathCharsMax);
}

function cut(text: string, max: number = functionLimits.errorCharsMax): string {
  return text.length > max ? `${text.slice(0, max - 3)}...` : text;
}

export interface LogSettings extends Retention {
  /** Whether arguments are logged. */
  readonly args?: boolean;
}

export interface ExecutionLogOptions {
  readonly path: string;
  readonly settings: LogSettings;
  readonly log: Log;
}

export interface TailedRuns {
  /** Encoded stream events, shared by all readers. */
  readonly events: readonly Uint8Array<ArrayBuffer>[];
  /** Number of further matching runs that were skipped. */
  readonly missed: number;
  /** ID of the newest run considered, matching or not. */
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
  /** Decides which arguments are logged. */
  readonly loggedArgs: LoggedArguments;
  readonly #worker: LogWorker;
  readonly #queue: RunQueue;
  readonly #tails = new Map<
    number,
    { readonly filter: RunFilter; readonly onRuns: (tailed: TailedRuns) => void }
  >();
  #tailCount = 0;

  constructor({ settings: { args = false, ...retention }, ...options }: ExecutionLogOptions) {
    this.loggedArgs = new LoggedArguments(options.log);
    this.loggedArgs.enable(args);
    this.#worker = new LogWorker({
      ...options,
      retention,
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
  runEnded(kind: RunKind, end: RunEnd): void {
    const { call, outcome, ts, version, durationMs, queuedMs, use, request } = end;
    const { lines, chars } = keptLines(outcome.logLines);
    const error = outcome.ok ? null : runError(outcome.error);
    const args = this.loggedArgs.of(call, outcome);
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
      args === null ? lines : [ARGS_MARK + args, ...lines],
      version,
    ], RUN_CHARS + chars + errorChars + (args?.length ?? 0));
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

  #dispatch({ events, batches, lastId }: TailedMessage): void {
    for (const { tail, events: positions, missed } of batches) {
      const own = positions.map((position) => events[position] ?? nothing);
      this.#tails.get(tail)?.onRuns({ events: own, missed, lastId });
    }
  }

  configure({ args = false, ...retention }: LogSettings): void {
    this.#worker.retain(retention);
    this.loggedArgs.enable(args);
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
