/**
 * What the rest of the server asks of the isolates. `mod/functions/host` implements it with child processes; the sync
 * tests and the simulation implement it in memory.
 */
import type { Lineage } from "./api/system_context.ts";
import type { CommitEntry, KeySpace, ReadSet } from "../engine/types.ts";
import type { Visibility } from "../protocol/api_reference.ts";
import type { AuthScope, Identity } from "./identity.ts";
import type { CallError, Outcome } from "./outcome.ts";

/** What a function is and who may call it. */
export interface FunctionInfo {
  readonly kind: "query" | "mutation" | "action";
  /** `internal` functions do not exist for clients, `admin` functions only for administrators. */
  readonly visibility: Visibility;
}

/** What is known of commits that another server made before somebody has asked what they changed. */
export interface FollowedGroup {
  /** The newest of them. */
  readonly ts: number;
  readonly count: number;
  /** Those in which keys of changed documents lie. */
  readonly keySpaces: ReadonlySet<KeySpace>;
  /** Whether tables of the service have changed. */
  readonly changesSystemTables: boolean;
  /** Makes them, anew each time. Throws for rows of which something else was told. */
  entries(): readonly CommitEntry[];
}

/**
 * Whether a group holds nothing for a listener, which is not told of it then: making commits is most of what they cost here.
 * Asked once of each group, in ts order, before anybody is told of it; whoever lets it pass takes note of its ts.
 */
export type SkipGroup = (group: FollowedGroup) => boolean;

/** Name of a mutation for replay records (SG7). The identity is the call's own. */
export interface ReplayKey {
  readonly sessionId: string;
  readonly requestId: number;
}

/**
 * Whose call it is. Clients cannot reach internal functions; the app's own functions, `server`, cannot reach those of the
 * service; the service itself, `system`, reaches all.
 */
export type CallOrigin = "client" | "server" | "system";

/** What a run read and wrote. */
export interface RunUse {
  readonly documentsRead: number;
  readonly indexRowsRead: number;
  readonly documentsWritten: number;
  readonly indexRowsWritten: number;
}

/** Who stands in line for a call, and who answers for what it takes. */
export interface Caller {
  /** Whose turn it is: the principal's, or that of a guest's socket. */
  readonly turn: string;
  /** Who is refused when calls run out of time again and again: the principal, or a guest's address. */
  readonly blame: string;
}

export interface FunctionCall {
  /** Number of the request it belongs to, of an action's when the action called it; one of its own when absent. */
  readonly request?: number;
  readonly udfPath: string;
  readonly args: Record<string, unknown>;
  readonly identity: Identity;
  readonly origin: CallOrigin;
  /** Absent for calls of the service itself, which stand in one line. */
  readonly caller?: Caller;
  /** Absent when it goes back to no scheduled function. Only what mutations schedule depends on it. */
  readonly lineage?: Lineage;
}

export interface MutationCall extends FunctionCall {
  /** Absent for HTTP calls and sockets without Connect, which are not de-duplicated. */
  readonly replay?: ReplayKey;
  /** What it does, when that is not its function: names what is known about its cost. */
  readonly work?: string;
  /** It has failed already: no function runs, the failure is recorded and answered unless another answer is recorded. */
  readonly failedWith?: CallError;
  /** As what its run is told to observers, when it runs in the place of another function. */
  readonly reportAs?: (outcome: Outcome) => { readonly udfPath: string; readonly outcome: Outcome };
}

export interface MutationAnswer {
  readonly outcome: Outcome;
  /** Commit ts; the current ts when nothing was written; also set on failure, to the current ts. */
  readonly ts: number;
  /** Whether the answer is a recorded one: then its log lines are empty. */
  readonly replayed: boolean;
  /** Of a run that came to its end: how long it took, how long the call waited for it, what it used. */
  readonly run?: { readonly durationMs: number; readonly queuedMs: number; readonly use: RunUse };
}

/** The reads of a run that was stopped before it could tell them: every commit may change its result. */
export const unknownReads: ReadSet = { "*": [] };

export interface QueryAnswer {
  /** The snapshot this answer was computed from. */
  readonly ts: number;
  readonly outcome: Outcome;
  /** {@linkcode unknownReads} for a run that timed out or was lost. */
  readonly readSet: ReadSet;
  readonly scope: AuthScope;
  /** Whether the run read the clock or the random generator: such a result never answers a one-shot call. */
  readonly nondeterministic: boolean;
  readonly durationMs: number;
  /** How long it waited for its turn. */
  readonly queuedMs?: number;
  /** Absent for a run that was stopped. */
  readonly use?: RunUse;
}

export interface QueryBatchOptions {
  /** It is known to be slow: it gets one reader, and not the last. */
  readonly slow?: boolean;
}

/** A set of queries run at one snapshot. */
export interface QueryBatchRun {
  /** Resolves to the snapshot's ts as soon as every reader of the wave has it open. Never rejects. */
  readonly pinned: Promise<number>;
  /** Resolves when every query has been answered. Never rejects. */
  readonly done: Promise<void>;
}

export interface FunctionHost {
  /** ts of the newest commit that the commit listeners have been told of. */
  readonly ts: number;

  /** The function at a path, or `undefined`. */
  info(udfPath: string): FunctionInfo | undefined;

  /**
   * Runs a mutation. Calls run in the order given. Resolves after the commit, and after the commit listeners have been
   * told of it. Never rejects: a full queue, a lost isolate or a timeout is an outcome.
   */
  mutate(call: MutationCall): Promise<MutationAnswer>;

  /** Whether a caller is refused a function for now, because calls of it ran out of time again and again. */
  isBlocked?(udfPath: string, caller: Caller): boolean;

  /** Whether a reader is free to take a wave now. */
  readonly hasFreeReader: boolean;

  /** Whether any query is known to be slow now. */
  readonly hasSlowQueries?: boolean;

  /** Whether a query of this caller is known to be slow: such ones never take the last reader. */
  isSlow?(call: Pick<FunctionCall, "udfPath" | "caller">): boolean;

  /** Whether a wave that is known to be slow would be taken now; asking brings a reader for it, if there may be one more. */
  hasFreeSlowReader?(): boolean;

  /** Called whenever a reader has become free. */
  onReaderFree(listener: () => void): void;

  /**
   * Runs queries at one snapshot, spread over the free readers. `onAnswer` is called once for each, in any order; a
   * query whose reader died is run again and its answer has a newer `ts`. An answer newer than {@linkcode ts} is told when
   * the commit listeners have heard of the commits it shows.
   */
  startQueryBatch(
    queries: readonly FunctionCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
    options?: QueryBatchOptions,
  ): QueryBatchRun;

  /** Runs an action. Never rejects. */
  act(call: FunctionCall): Promise<Outcome>;

  /**
   * Called with each group of commits, in ts order without gaps, before the answers of their mutations resolve. With `passes`
   * not of those that it lets pass.
   */
  onCommits(listener: (entries: readonly CommitEntry[]) => void, passes?: SkipGroup): void;

  /** Called after new code was swapped in: every query has to run again. */
  onReload(listener: () => void): void;

  /** How actions run queries: through the shared queries, wired by the server. */
  serveQueries(run: (call: FunctionCall) => Promise<Outcome>): void;
}
