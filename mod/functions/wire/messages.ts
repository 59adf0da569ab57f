/** Messages between main and its isolates, sent with segment_frames.ts. `value` fields are segment indexes. */
import type { SchemaPreview, ViolationLimits } from "../../engine/mod.ts";
import type { ReadSet } from "../../engine/types.ts";
import type { CronDefinition } from "../api/cron_jobs.ts";
import type { Bytes } from "./segment_frames.ts";
import type { Lineage } from "../api/system_context.ts";
import type { CallOrigin, FunctionInfo, ReplayKey } from "../host_port.ts";
import type { WireHeaders } from "./http_headers.ts";
import type { AuthScope, Identity } from "../identity.ts";
import type { CallError } from "../outcome.ts";
import type { ReadTrace } from "../read_trace.ts";
import type { WireApplied } from "./applied_rows.ts";
import type { WireEntries } from "./packed_entry.ts";

export type IsolateRole = "writer" | "reader" | "runner";

/** First message from main: the configuration of an isolate. */
export interface Boot {
  readonly type: "Boot";
  readonly role: IsolateRole;
  /** Path of `data.db`. Not opened by runners. */
  readonly databasePath: string;
  /** Absolute path of the file with the app's code. */
  readonly bundle: string;
  /** The functions folder in the names of sources (app_sources.ts). */
  readonly functions: string;
  /** Folder on the author's disk to which those names are relative. */
  readonly authorFolder: string;
  readonly progressPath: string;
  /** Environment of the app, for runners (`ctx.env`). */
  readonly env: Record<string, string>;
  /** Server settings for functions of the service, by feature. JSON. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Numbers of tables that the database does not have yet. */
  readonly tableNumbers?: Readonly<Record<string, number>>;
  /** Enables the journal, with a limit, or `external`: main appends each row before the commit (`RowAppended`). */
  readonly journal?: { readonly pendingBytesMax: number } | "external";
  /** The writer applies rows of another server: it runs no mutations, and the rows determine the schema. */
  readonly follows?: boolean;
  /** Page cache size. */
  readonly cacheBytes?: number;
  /** Version hash of a writer that appends to a cluster's log, if all servers have to serve the same version. */
  readonly version?: string;
  /** For a reader that only checks the app against the data. */
  readonly check?: CheckBounds;
  /** JavaScript of a query that is not part of the app, for a reader that runs only this one (`host/code/ad_hoc_queries.ts`). */
  readonly adHocQuery?: string;
  /** The isolate loads the app while the old writer still works, and opens the database after `SchemaReady`. */
  readonly waits?: boolean;
}

/** Main to a waiting isolate: the old writer has finished, or the new writer has migrated the schema. Sent once. */
export interface SchemaReady {
  readonly type: "SchemaReady";
}

export interface CheckBounds extends ViolationLimits {
  /** Time limit for checking documents. */
  readonly msMax: number;
}

/** Result of checking a version against the current data. */
export interface AppCheck {
  readonly schema: SchemaPreview;
  /** Fingerprints of the app's functions, by path. */
  readonly functions: Readonly<Record<string, string>>;
  readonly crons: readonly WireCron[];
}

/** Writer or waiting reader to main: the app is loaded (once, before the answer to Boot). Migration has no time limit. */
export interface Loaded {
  readonly type: "Loaded";
}

export interface WireCron {
  readonly name: string;
  readonly schedule: CronDefinition["schedule"];
  readonly function: string;
  readonly functionKind: "mutation" | "action";
  readonly args: Record<string, unknown>;
}

export interface WireRoute {
  /** Identifies it in messages to runners. */
  readonly key: string;
  readonly method: string;
  readonly path: string;
  /** Whether it matches every path that begins with `path`. */
  readonly prefix: boolean;
}

export type BootAnswer =
  | {
    readonly type: "Ready";
    readonly functions: readonly (readonly [udfPath: string, info: FunctionInfo])[];
    /** Current ts. 0 for runners. */
    readonly ts: number;
    /** From a writer: the newest committed group, from which main learns the outcome of a partly answered batch. */
    readonly lastGroup: string | null;
    /** From a writer. */
    readonly crons?: readonly WireCron[];
    /** From a writer. */
    readonly routes?: readonly WireRoute[];
    /** History position of a following writer or of a cluster's log. */
    readonly reached?: Reached;
    /** From a writer whose start was a commit that switched the served version. */
    readonly switchedVersion?: boolean;
    /** From a writer that changed tables, indexes or the served version: readers have to reload. */
    readonly changed?: boolean;
    /** From a reader started with `check`. */
    readonly check?: AppCheck;
  }
  | { readonly type: "Broken"; readonly message: string; readonly code?: "disk_full" };

export type WireOutcome =
  | {
    /** Segment of the result. */
    readonly value: number;
    readonly logLines: readonly string[];
    /** The name under which the reader keeps the result. */
    readonly kept?: string;
    /** The segment replaces the middle of the call's `base`; these are the characters before and after it. */
    readonly spliced?: readonly [head: number, tail: number];
  }
  | { readonly error: CallError; readonly logLines: readonly string[] };

export interface WireCall {
  readonly udfPath: string;
  readonly args: Record<string, unknown>;
  readonly identity: Identity;
  readonly origin: CallOrigin;
}

export interface WireQuery extends WireCall {
  /** Keep a large result. The name is that of the earlier result that main has; "" for none. */
  readonly base?: string;
  /** Report its reads. */
  readonly traced?: true;
}

export interface WireMutation extends WireCall {
  readonly replay?: ReplayKey;
  readonly failedWith?: CallError;
  readonly lineage?: Lineage;
}

/** Resource usage of a run, in the order of `RunUse`. */
export type WireUse = readonly [
  documentsRead: number,
  indexRowsRead: number,
  documentsWritten: number,
  indexRowsWritten: number,
];

/** Main to writer: run these mutations in order and commit them in groups. */
export interface Batch {
  readonly type: "Batch";
  /** Unique over the life of the database: `<server start>-<count>`. */
  readonly batch: string;
  readonly calls: readonly WireMutation[];
}

/**
 * Writer to main: the batch's last group is about to commit, so main may send the next batch. The commit may still fail. Not
 * sent for groups of one call.
 */
export interface Committing {
  readonly type: "Committing";
  readonly batch: string;
}

/** A mutation's answer. Trailing default values are omitted. `result` is a segment index or an error. */
export type WireAnswer = readonly [
  ts: number,
  result: number | CallError,
  logLines?: readonly string[],
  replayed?: boolean,
];

/** Writer to main, after a commit: answers of `calls[from]` on, stored with the commit for a new writer to report. */
export interface Group extends WireEntries {
  readonly type: "Group";
  readonly batch: string;
  readonly from: number;
  readonly answers: readonly WireAnswer[];
  /** Per answer the duration of its run in milliseconds and its {@linkcode WireUse}: five numbers each. */
  readonly uses?: readonly number[];
  readonly ts: number;
  /** The batch is ended early because it takes too long. The remaining calls were not run. */
  readonly ends?: true;
}

/** A position in the history of a database, after a journal row. */
export interface Reached {
  readonly generation: string;
  readonly seq: number;
  readonly ts: number;
  readonly sum: string;
}

/** Writer to main: append this row to the log before its group is committed. The row's body is the frame's segment. */
export interface AppendRow {
  readonly type: "AppendRow";
  /** `null` for a group without a row, to check whether this server is still the leader. */
  readonly row: readonly [seq: number, tsBefore: number, ts: number, at: number, sum: string] | null;
}

/** Main to writer: the outcome of `AppendRow`. */
export interface RowAppended {
  readonly type: "RowAppended";
  /** `null` for a group without a row. */
  readonly seq: number | null;
  /** Why it was not appended. `null` if it was, so the group can be committed. */
  readonly refused: AppendRefusal | null;
}

export interface AppendRefusal {
  readonly message: string;
  /** Whether the row is certain not to exist, so the same call may succeed later. */
  readonly known: boolean;
}

/** Main to a following writer: commit these journal rows as one group. */
export interface ApplyRows {
  readonly type: "ApplyRows";
  readonly rows: readonly (readonly [
    seq: number,
    tsBefore: number,
    ts: number,
    at: number,
    sum: string,
    /** A segment index. */
    body: number,
  ])[];
}

/** Writer to main: the rows are committed. */
export interface RowsApplied extends WireApplied {
  readonly type: "RowsApplied";
  readonly reached: Reached;
}

/** Writer to main: nothing of the rows was committed. */
export interface RowsRefused {
  readonly type: "RowsRefused";
  readonly message: string;
  /** They do not continue this database's history, and never will. */
  readonly unfit: boolean;
}

/** Main to writer: journal rows of a generation up to this one are stored elsewhere. */
export interface JournalConfirmed {
  readonly type: "JournalConfirmed";
  readonly generation: string;
  readonly seq: number;
}

/** Main to writer: abandon this generation of the journal. */
export interface JournalRestart {
  readonly type: "JournalRestart";
  readonly generation: string;
  readonly reason: "lost" | "overflow";
}

/** Main to reader: open a snapshot, answer Pinned, run the queries in order, close the snapshot after the last. */
export interface RunQueryBatch {
  readonly type: "RunQueryBatch";
  readonly batch: number;
  readonly queries: readonly WireQuery[];
  /** Other readers need the same snapshot: wait for QueryBatchGo after Pinned. */
  readonly together?: true;
}

/**
 * Main to a waiting reader. "run": run `queries` and `more`. "again": reopen the snapshot and answer Pinned. "drop": forget the
 * batch.
 */
export interface QueryBatchGo {
  readonly type: "QueryBatchGo";
  readonly batch: number;
  readonly what: "run" | "again" | "drop";
  readonly more?: readonly WireQuery[];
}

export interface Pinned {
  readonly type: "Pinned";
  readonly batch: number;
  readonly ts: number;
}

/** Reader to main: the answers of `queries[from]` onwards. `last` means that the snapshot is closed. */
export interface QueryBatchAnswers {
  readonly type: "QueryBatchAnswers";
  readonly batch: number;
  readonly from: number;
  readonly answers: readonly {
    readonly outcome: WireOutcome;
    readonly readSet: ReadSet;
    readonly scope: AuthScope;
    readonly nondeterministic: boolean;
    readonly durationMs: number;
    readonly use?: WireUse;
    /** Of a traced query. */
    readonly reads?: readonly ReadTrace[];
  }[];
  readonly last: boolean;
}

/** Main to runner: run an action. */
export interface RunAction extends WireCall {
  readonly type: "RunAction";
  /** Random id of the call, so that app code cannot forge messages of another call. */
  readonly call: number;
  /** Number of calls sent to the runner so far, including this one. */
  readonly order: number;
}

export interface ActionDone {
  readonly type: "ActionDone";
  readonly call: number;
  readonly outcome: WireOutcome;
}

/** Runner to main: a call of `ctx.runQuery`, `ctx.runMutation` or `ctx.runAction`, with the action's identity. */
export interface SubCall {
  readonly type: "SubCall";
  readonly call: number;
  readonly sub: number;
  readonly kind: "query" | "mutation" | "action";
  readonly udfPath: string;
  readonly args: Record<string, unknown>;
}

/** Main to runner: the answer to a SubCall. */
export interface SubAnswer {
  readonly type: "SubAnswer";
  readonly call: number;
  readonly sub: number;
  readonly outcome: WireOutcome;
}

/**
 * Main to runner: handle a request of a route. Its body follows in frames of bytes, then BodyEnd. The runner sends
 * ResponseHead, the body in frames of bytes, and ActionDone at the end, with a meaningless result or an error. Bodies are
 * subject to flow control (body_stream.ts).
 */
export interface RunRequest {
  readonly type: "RunRequest";
  readonly call: number;
  readonly order: number;
  /** Key of the route. */
  readonly route: string;
  readonly method: string;
  readonly url: string;
  readonly headers: WireHeaders;
  readonly hasBody: boolean;
  readonly identity: Identity;
}

/** Main to runner: the request's body is complete or was aborted. */
export interface BodyEnd {
  readonly type: "BodyEnd";
  readonly call: number;
  readonly error: string | null;
}

/** Main to runner: the client is gone. */
export interface CancelRequest {
  readonly type: "CancelRequest";
  readonly call: number;
}

/** Runner to main: status and headers of a response. */
export interface ResponseHead {
  readonly type: "ResponseHead";
  readonly call: number;
  readonly status: number;
  readonly statusText: string;
  readonly headers: WireHeaders;
  readonly hasBody: boolean;
}

/** Both directions: bytes of the other side's body were read, so the window moves. */
export interface BodyCredit {
  readonly type: "BodyCredit";
  readonly call: number;
  readonly bytes: number;
}

/** Runner to main: the handler cancelled the request's body. */
export interface BodyCanceled {
  readonly type: "BodyCanceled";
  readonly call: number;
}

/** Main to runner: a liveness check. The runner answers immediately unless app code blocks it. */
export interface KeepAlive {
  readonly type: "KeepAlive";
}

export type RequestMessage = BodyEnd | BodyCredit | Bytes | CancelRequest;
export type ResponseMessage = BodyCredit | BodyCanceled | Bytes | ResponseHead;

export type ToIsolate =
  | Boot
  | SchemaReady
  | Batch
  | JournalConfirmed
  | JournalRestart
  | ApplyRows
  | RowAppended
  | RunQueryBatch
  | QueryBatchGo
  | RunAction
  | SubAnswer
  | KeepAlive
  | RunRequest
  | RequestMessage;
export type FromIsolate =
  | Loaded
  | BootAnswer
  | Committing
  | Group
  | AppendRow
  | RowsApplied
  | RowsRefused
  | Pinned
  | QueryBatchAnswers
  | ActionDone
  | SubCall
  | KeepAlive
  | ResponseMessage;
