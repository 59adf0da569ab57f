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
  /** Requests a histogram with the page. */
  readonly histogram?: { readonly from: number; readonly to: number; readonly bars: number };
}

export interface PageAnswer {
  readonly runs: readonly LoggedRun[];
  readonly next: number | null;
  /** Whether the search timed out before the page was full. */
  readonly cut: boolean;
  readonly histogram: Histogram | null;
}

/** Query for the start of a stream: runs after a given one, if any. */
export interface BacklogQuestion {
  readonly filter: RunFilter;
  readonly after: number | null;
}

export interface BacklogAnswer {
  /** Stream events, oldest first. */
  readonly events: string;
  /** Further matching runs, counted as far as the time limit allowed. */
  readonly missed: number;
  /** ID of the newest run. Events of later runs, reported by a tail, follow these. */
  readonly lastId: number;
}

/** Requests by kind. An answer of `null` means that the log is unavailable. */
export interface Questions {
  readonly page: { readonly asked: PageQuestion; readonly answer: PageAnswer };
  readonly backlog: { readonly asked: BacklogQuestion; readonly answer: BacklogAnswer };
  readonly figures: { readonly asked: { readonly now: number }; readonly answer: readonly SavedFigures[] };
  /** Stores runs: an array of run records as JSON, which is faster to send than objects. */
  readonly runs: { readonly asked: string; readonly answer: true };
  /** Closes the log. */
  readonly close: { readonly asked: null; readonly answer: true };
}

export type QuestionKind = keyof Questions;
export type Answer = Questions[QuestionKind]["answer"] | null;

export type ToLogWorker =
  /** The first message. */
  | {
    readonly type: "Start";
    readonly path: string;
    readonly retention: Retention;
    readonly cacheBytes: number;
  }
  | { readonly type: "Retain"; readonly retention: Retention }
  | { readonly type: "SaveFigures"; readonly figures: readonly SavedFigures[] }
  /** Starts reporting matching runs as `Tailed`. */
  | { readonly type: "Tail"; readonly tail: number; readonly filter: RunFilter }
  | { readonly type: "Untail"; readonly tail: number }
  | {
    readonly [K in QuestionKind]: {
      readonly type: "Ask";
      readonly ask: number;
      readonly kind: K;
      readonly asked: Questions[K]["asked"];
    };
  }[QuestionKind];

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
export interface TailShare {
  readonly tail: number;
  /** Indexes of the message's events. */
  readonly events: readonly number[];
  /** Number of further matching runs. */
  readonly missed: number;
}

export type FromLogWorker =
  | { readonly type: "Answer"; readonly ask: number; readonly answer: Answer }
  /** Matching runs of a batch: encoded events, which tails share. */
  | {
    readonly type: "Tailed";
    readonly events: readonly Uint8Array<ArrayBuffer>[];
    readonly shares: readonly TailShare[];
    /** ID of the newest run considered. */
    readonly lastId: number;
  }
  | { readonly type: "State"; readonly state: LogState }
  /** A message for the server's log. */
  | {
    readonly type: "Say";
    readonly level: "info" | "warn";
    readonly message: string;
    readonly reason: string;
  };

export type TailedMessage = Extract<FromLogWorker, { type: "Tailed" }>;
