/** What main and the log process say to one another: lines of JSON. */
import type { RunFilter } from "../run_filter.ts";
import type { PackMessage } from "../packs/run_pack.ts";
import type { LoggedRun } from "../run_record.ts";
import type { Histogram } from "../store/histogram.ts";
import type { Retention, SavedFigures } from "../store/log_store.ts";

/** A question for a page of runs. */
export interface PageQuestion {
  readonly filter: RunFilter;
  readonly before?: number;
  readonly limit: number;
  /** Asked for with the page, when it is. */
  readonly histogram?: { readonly from: number; readonly to: number; readonly bars: number };
}

export interface PageAnswer {
  readonly runs: readonly LoggedRun[];
  readonly next: number | null;
  /** Whether the search ran out of time before the page was full. */
  readonly cut: boolean;
  readonly histogram: Histogram | null;
}

/** A reader of a stream that goes on behind a run, or begins with what comes. */
export interface BacklogQuestion {
  readonly filter: RunFilter;
  readonly after: number | null;
}

export interface BacklogAnswer {
  /** Events of the stream, oldest first. */
  readonly events: string;
  /** Runs that passed and are not among them, counted as far as time allowed. */
  readonly missed: number;
  /** Id of the newest run there was: what a tail tells of later ones belongs behind the events. */
  readonly lastId: number;
}

export interface Questions {
  readonly page: { readonly asked: PageQuestion; readonly answer: PageAnswer };
  readonly backlog: { readonly asked: BacklogQuestion; readonly answer: BacklogAnswer };
  readonly figures: { readonly asked: { readonly now: number }; readonly answer: readonly SavedFigures[] };
}

export type QuestionKind = keyof Questions;

export type ToLogProcess =
  /** The first message. */
  | {
    readonly type: "Start";
    readonly path: string;
    readonly retention: Retention;
    readonly cacheBytes: number;
  }
  | { readonly type: "Runs"; readonly pack: PackMessage }
  | { readonly type: "Retain"; readonly retention: Retention }
  | { readonly type: "SaveFigures"; readonly figures: readonly SavedFigures[] }
  /** From now on runs that pass come as `Tailed`. */
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

/** How the log is, told when it changes and now and then. */
export interface LogState {
  readonly rows: number;
  readonly bytes: number;
  /** Runs that came and could not be kept, since the process was started. */
  readonly lost: number;
  /** Why the log cannot be written at present; `null` when it can. */
  readonly trouble: string | null;
}

/** What some tails get of a pack. */
export interface TailShare {
  readonly tails: readonly number[];
  /** Positions among the events of the message. */
  readonly events: readonly number[];
  /** So many more passed. */
  readonly missed: number;
}

export type FromLogProcess =
  | {
    readonly type: "Answer";
    readonly ask: number;
    /** `null`: there is no log to ask at present. */
    readonly answer: Questions[QuestionKind]["answer"] | null;
  }
  /** Runs of a pack that pass: their events, and which of them each tail gets. */
  | {
    readonly type: "Tailed";
    readonly events: readonly string[];
    readonly told: readonly TailShare[];
    /** Id of the newest run that was looked at. */
    readonly lastId: number;
  }
  | { readonly type: "State"; readonly state: LogState }
  /** Something the operator should read. */
  | {
    readonly type: "Say";
    readonly level: "info" | "warn";
    readonly message: string;
    readonly reason: string;
  };

export type TailedMessage = Extract<FromLogProcess, { type: "Tailed" }>;
