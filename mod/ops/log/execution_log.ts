/**
 * The execution log of a running server: takes note of each run of a function, and lets administrators read them. What is
 * done here for a run is little; the rest is for the log process, on which nobody waits.
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
  /** Absolute. */
  readonly dataDir: string;
  /** Of the log's database, in the data folder. */
  readonly path: string;
  readonly retention: Retention;
  /** Page cache of the database. */
  readonly cacheBytes: number;
  /** Has the log process wait for {@linkcode ExecutionLog.begin}; runs wait for it. */
  readonly waits?: boolean;
  readonly log: Log;
}

/** Runs that a tail is told of. */
export interface Tailed {
  /** Events of the stream; the same bytes for all who get them. */
  readonly events: readonly Uint8Array<ArrayBuffer>[];
  /** So many more passed, and were left out. */
  readonly missed: number;
  /** Id of the newest run that was looked at. */
  readonly lastId: number;
}

/** How the log is. */
export interface LogFacts extends LogState {
  /** Runs that wait to be written. */
  readonly queued: number;
  /** Runs that were left out because too many came at once, since the server was started. */
  readonly dropped: number;
}

const encoder = new TextEncoder();
const nothing = new Uint8Array();

/** About what a run without lines and error takes. */
const RUN_CHARS = 256;

export class ExecutionLog implements AsyncDisposable {
  readonly #process: LogProcess;
  readonly #queue: RunQueue;
  readonly #tails = new Map<
    number,
    { readonly filter: RunFilter; readonly onRuns: (tailed: Tailed) => void }
  >();
  #tailCount = 0;

  constructor(options: ExecutionLogOptions) {
    this.#process = new LogProcess({
      ...options,
      onStart: () => {
        for (const [tail, { filter }] of this.#tails) void this.#process.send({ type: "Tail", tail, filter });
      },
      onTailed: (message) => this.#tell(message),
    });
    this.#queue = new RunQueue({
      open: () => this.#process.alive,
      send: (pack) => this.#process.send({ type: "Runs", pack: packMessage(pack) }),
    });
  }

  /** Starts the log process, unless it was. */
  begin(): void {
    this.#process.begin();
  }

  /** Takes note of a run. Called often: must be quick and must not throw. */
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
      trouble: state?.trouble ?? (this.#process.alive ? null : "The log process is being started"),
      queued: this.#queue.size,
      dropped: this.#queue.dropped,
    };
  }

  /** Runs that ended before this was called are among those that are searched. Throws `unavailable` and `overloaded`. */
  async page(question: PageQuestion): Promise<PageAnswer> {
    await this.#queue.flush();
    return await this.#process.ask("page", question);
  }

  /** Tells of runs that pass, from the next one on. Returns how to end that. */
  tail(filter: RunFilter, onRuns: (tailed: Tailed) => void): () => void {
    const tail = ++this.#tailCount;
    this.#tails.set(tail, { filter, onRuns });
    void this.#process.send({ type: "Tail", tail, filter });
    return () => {
      this.#tails.delete(tail);
      void this.#process.send({ type: "Untail", tail });
    };
  }

  /** Runs after one that was seen, as events. What a tail of the same filter tells after this belongs behind them. */
  async backlog(filter: RunFilter, after: number | null): Promise<BacklogAnswer> {
    await this.#queue.flush();
    return await this.#process.ask("backlog", { filter, after });
  }

  #tell({ events, told, lastId }: TailedMessage): void {
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

  /** Hands over what is known and ends the log process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue.close();
    await this.#process[Symbol.asyncDispose]();
  }
}
