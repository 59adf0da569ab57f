/**
 * The server's interface to the isolates. Implemented with child processes by `mod/functions/host`, and in memory for tests.
 */
import type { Lineage } from "./api/system_context.ts";
import type { CommitEntry, KeySpace, ReadSet } from "../engine/types.ts";
import type { Visibility } from "../protocol/api_reference.ts";
import type { CallTrace } from "./call_trace.ts";
import type { AuthScope, Identity } from "./identity.ts";
import type { CallError, Outcome } from "./outcome.ts";

/** Kind and visibility of a function. */
export interface FunctionInfo {
  readonly kind: "query" | "mutation" | "action";
  /** `internal` functions do not exist for clients, `admin` functions only for administrators. */
  readonly visibility: Visibility;
}

/** Facts about commits of another server, known before their changes are decoded. */
export interface FollowedGroup {
  /** The newest commit. */
  readonly ts: number;
  readonly count: number;
  readonly keySpaces: ReadonlySet<KeySpace>;
  readonly changesSystemTables: boolean;
  /** Decodes the commits. Not cached. Throws if the rows contradict these facts. */
  entries(): readonly CommitEntry[];
}

/**
 * Returns whether a listener can skip a group, which saves decoding. Called once per group, in order of ts and before any
 * listener. A listener that skips a group has to record its ts.
 */
export type SkipGroup = (group: FollowedGroup) => boolean;

/** Key of a mutation's replay record (SG7), together with the call's identity. */
export interface ReplayKey {
  readonly sessionId: string;
  readonly requestId: number;
}

/** Origin of a call: `client` calls public functions, `server` (the app) its own, `system` (the service) all. */
export type CallOrigin = "client" | "server" | "system";

/** Resource usage of a run. */
export interface RunUse {
  readonly documentsRead: number;
  readonly indexRowsRead: number;
  readonly documentsWritten: number;
  readonly indexRowsWritten: number;
}

/** The caller of a function, for fair queues and rate limits. */
export interface Caller {
  /** Fair-queue key: the principal, or the socket of an anonymous caller. */
  readonly queueKey: string;
  /** Key to which timeouts are attributed: the principal, or the address of an anonymous caller. */
  readonly blame: string;
}

export interface FunctionCall {
  /** Request id, inherited from the calling action. A new one if absent. */
  readonly request?: number;
  readonly udfPath: string;
  readonly args: Record<string, unknown>;
  readonly identity: Identity;
  readonly origin: CallOrigin;
  /** Absent for system calls, which share one queue. */
  readonly caller?: Caller;
  /** For calls of `ctx`: the function path of the calling action or route, and the end of its run. Never rejects. */
  readonly calledBy?: string;
  readonly callerEnded?: Promise<unknown>;
  /** Absent if no scheduled function caused it. Affects only what mutations schedule. */
  readonly lineage?: Lineage;
  readonly trace?: CallTrace;
}

export interface QueryCall extends FunctionCall {
  /** The last result of a live query; `null` if it has none. Absent for one-shot calls. */
  readonly base?: Outcome | null;
}

export interface MutationCall extends FunctionCall {
  /** Absent for HTTP calls without the header Syncline-Request and sockets without Connect: these are not deduplicated. */
  readonly replay?: ReplayKey;
  /** Key of its cost estimate, if not the function. */
  readonly work?: string;
  /** A failure to record and return, instead of running the function, unless another answer is recorded. */
  readonly failedWith?: CallError;
  /** Returns the function path and outcome to report, if it runs on behalf of another function. */
  readonly reportAs?: (outcome: Outcome) => { readonly udfPath: string; readonly outcome: Outcome };
}

export interface MutationAnswer {
  readonly outcome: Outcome;
  /** Commit ts. The current ts if nothing was written or the call failed. */
  readonly ts: number;
  /** Whether this is a recorded answer, whose log lines are empty. */
  readonly replayed: boolean;
  /** Present if the run finished. */
  readonly run?: { readonly durationMs: number; readonly queuedMs: number; readonly use: RunUse };
}

/** Read set of a run that was stopped: any commit may change its result. */
export const unknownReads: ReadSet = { "*": [] };

export interface QueryAnswer {
  /** The snapshot of the run. */
  readonly ts: number;
  readonly outcome: Outcome;
  /** Hash of the version of the app's code that answered, if a reader did. */
  readonly version?: string | null;
  /** {@linkcode unknownReads} if the run timed out or was lost. */
  readonly readSet: ReadSet;
  readonly scope: AuthScope;
  /** Whether the run read the clock or the random generator. Such results never answer one-shot calls. */
  readonly nondeterministic: boolean;
  readonly durationMs: number;
  readonly queuedMs?: number;
  /** Absent if the run was stopped. */
  readonly use?: RunUse;
}

export interface QueryBatchOptions {
  /** The queries are known to be slow: they run in one reader, never the last free one. */
  readonly slow?: boolean;
}

export interface QueryBatchRun {
  /** Resolves to the snapshot's ts once every reader has opened it. Never rejects. */
  readonly pinned: Promise<number>;
  /** Resolves when every query was answered. Never rejects. */
  readonly done: Promise<void>;
}

/** The processes that run queries, and which batches they accept now. */
export interface QueryReaders {
  readonly free: boolean;
  onFree(listener: () => void): void;
  /** Starts a reader if there is none, because queries are expected. Without it, the first query does. */
  prepare?(): void;
  readonly hasSlowQueries?: boolean;
  /** Whether a query of this caller is known to be slow. Slow queries never take the last reader. */
  isSlow?(call: Pick<FunctionCall, "udfPath" | "caller">): boolean;
  /** Whether a slow batch would be accepted. May start a reader for it. */
  slowFree?(): boolean;
}

export interface FunctionHost {
  /** ts of the newest commit. Advanced with each group before listeners are called. */
  readonly ts: number;

  /** Returns the function at a path, or `undefined`. */
  info(udfPath: string): FunctionInfo | undefined;

  /** Runs a mutation, in order. Resolves after its commit is published. Never rejects: failures are outcomes. */
  mutate(call: MutationCall): Promise<MutationAnswer>;

  /** Whether the caller is temporarily blocked from a function after repeated timeouts. */
  isBlocked?(udfPath: string, caller: Caller): boolean;

  readonly readers: QueryReaders;

  /**
   * Runs queries at one snapshot, distributed over the free readers. `onAnswer` is called once per query, in any order. If a
   * reader dies, its queries run again at a newer snapshot. Answers that reflect commits which listeners have not processed
   * are held back until they have, or for at most 10 s.
   */
  startQueryBatch(
    queries: readonly QueryCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
    options?: QueryBatchOptions,
  ): QueryBatchRun;

  /** Runs an action. Never rejects. */
  act(call: FunctionCall): Promise<Outcome>;

  /** Registers a listener for groups of commits, in ts order before their mutations resolve. `skip` skips groups. */
  onCommits(listener: (entries: readonly CommitEntry[]) => void, skip?: SkipGroup): void;

  /** Registers a listener, called after new code was loaded or commits may have been missed: every query has to run again. */
  onReload(listener: () => void): void;

  /** Sets how actions run queries: through the shared queries. */
  serveQueries(run: (call: FunctionCall) => Promise<Outcome>): void;
}
