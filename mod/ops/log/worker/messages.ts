/** Messages between the main thread and the log worker. */
import type { RunFilter } from "../run_filter.ts";
import type { LoggedRun } from "../run_record.ts";
import type { Histogram } from "../store/histogram.ts";
import type { Retention, SavedFigures } from "../store/log_store.ts";

/** Query for a page of runs. */
export interface PageQuestion {
  readonly filter: RunFilter;
  readonly before?: number;
  readonly limit: number;
  /** Part of the search timeout that the search may use, up to 1. */
  readonly share?: number;
  readonly histogram?: { readonly from: number; readonly to: number; readonly bars: number };
}

export interface PageAnswer {
  readonly runs: readonly LoggedRun[];
  readonly next: number | null;
  /** Whether the search timed out before the page was full. */
  readonly cut: boolean;
  /** ID of the newest run in the log, matching or not. */
  readonly lastId: number;
  readonly histogram: Histogram | null;
}

/** Query for the start of a stream: runs after a given one, if any. */
export interface BacklogQuestion {
  readonly filter: RunFilter;
  readonly after: number | null;
  /** Part of the search timeout that the search may use, up to 1. */
  readonly share?: number;
}

export interface BacklogAnswer {
  /** Stream events, oldest first. */
  readonly events: string;
  /** Further matching runs, counted as far as the time limit allowed. */
  readonly missed: number;
  /** ID of the newest run. Events of later runs, reported by a tail, follow these. */
  readonly lastId: number;
}

/** Methods of the log worker, called by messages. `null` means that the log is unavailable. */
export interface LogMethods {
  page(question: PageQuestion): PageAnswer | null;
  backlog(question: BacklogQuestion): BacklogAnswer | null;
  loadFigures(now: number): readonly SavedFigures[] | null;
  saveFigures(figures: readonly SavedFigures[]): void;
  /** Stores runs: an array of run records as JSON, which is faster to send than objects. */
  store(runs: string): true;
  retain(retention: Retention): void;
  /** Starts reporting matching runs as `Tailed`. */
  tail(tail: number, filter: RunFilter): void;
  untail(tail: number): void;
  close(): void;
}

export type LogMethod = keyof LogMethods;

export type ToLogWorker =
  /** The first message. */
  | {
    readonly type: "Start";
    readonly path: string;
    readonly retention: Retention;
  }
  | {
    readonly type: "Call";
    readonly call: number;
    readonly method: LogMethod;
    readonly args: readonly unknown[];
  };

/** State of the log, reported on changes and periodically. */
export interface LogState {
  readonly rows: number;
  readonly bytes: number;
  /** Runs that could not be stored since the worker started. */
  readonly lost: number;
  /** Why the log cannot be written at present, or `null`. */
  readonly trouble: string | null;
}

/** Matching runs of a batch for a tail. */
export interface TailBatch {
  readonly tail: number;
  /** Indexes of the message's events. */
  readonly events: readonly number[];
  /** Number of further matching runs. */
  readonly missed: number;
}

export type FromLogWorker =
  | { readonly type: "Answer"; readonly call: number; readonly answer: unknown }
  /** Matching runs of a batch: encoded events, which tails share. */
  | {
    readonly type: "Tailed";
    readonly events: readonly Uint8Array<ArrayBuffer>[];
    readonly batches: readonly TailBatch[];
    /** ID of the newest run considered, matching or not. */
    readonly lastId: number;
  }
  | { readonly type: "State"; readonly state: LogState }
  /** A message for the server's log. */
  | {
    readonly type: "Log";
    readonly level: "info" | "warn";
    readonly message: string;
    readonly reason: string;
  };

export type TailedMessage = Extract<FromLogWorker, { type: "Tailed" }>;
