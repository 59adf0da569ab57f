/** The messages between main and its isolates (frames.ts carries them). `value` fields name a segment by position. */
import type { SchemaPreview, ViolationLimits } from "../../engine/mod.ts";
import type { ReadSet } from "../../engine/types.ts";
import type { CronDefinition } from "../api/cron_jobs.ts";
import type { Bytes } from "./segment_frames.ts";
import type { Lineage } from "../api/system_context.ts";
import type { CallOrigin, FunctionInfo, ReplayKey } from "../host_port.ts";
import type { WireHeaders } from "./http_headers.ts";
import type { AuthScope, Identity } from "../identity.ts";
import type { CallError } from "../outcome.ts";
import type { CodePlace } from "./code_place.ts";
import type { PackageTable } from "./package_table.ts";
import type { WireApplied } from "./applied_rows.ts";
import type { WireEntries } from "./packed_entry.ts";

/** What an isolate is for. */
export type IsolateRole = "writer" | "reader" | "runner";

/** First message from main: everything an isolate has to know. */
export interface Boot {
  readonly type: "Boot";
  readonly role: IsolateRole;
  /** Path of `data.db`; runners do not open it. */
  readonly databasePath: string;
  /** Absolute path of the app's functions folder. */
  readonly functionsDir: string;
  /** The folder that all of the app's code lies below, and what its author calls it. */
  readonly place: CodePlace;
  /** File of 16 bytes in which the isolate notes what it is running (progress.ts). */
  readonly progressPath: string;
  /** Environment of the app, for runners (`ctx.env`). */
  readonly env: Record<string, string>;
  /** What functions of the service have to know of the server, by feature; JSON. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** The app's npm packages, when it uses any. */
  readonly packages?: PackageTable;
  /** Numbers that tables get which the database does not have yet. */
  readonly tableNumbers?: Readonly<Record<string, number>>;
  /** For a writer that keeps a journal: how much of it may wait, in bytes. */
  readonly journal?: { readonly pendingBytesMax: number };
  /** The commits are made elsewhere: the writer applies rows and runs nothing, and the schema is what the rows say. */
  readonly follows?: boolean;
  /** Pages of the database that it keeps. */
  readonly cacheBytes?: number;
  /** The history is kept elsewhere: before a group is committed its row is sent to main, and waits for `RowKept`. */
  readonly gives?: boolean;
  /** Of a writer that gives rows: the hash of its version, where others have to serve that too; otherwise each what it has. */
  readonly version?: string;
  /** For a reader that is to look whether the app fits the data, and to serve nobody. */
  readonly check?: CheckBounds;
  /**
   * It loads the app beside a writer that still works, and looks into the database when it is told `Fitted`: a reader, or a
   * writer that gives rows.
   */
  readonly waits?: boolean;
}

/** To one that waits: the writer before it is done with the database, or has made it fit the schema. Said once. */
export interface Fitted {
  readonly type: "Fitted";
}

export interface CheckBounds extends ViolationLimits {
  /** For how long documents may be looked at. */
  readonly msMax: number;
}

/** What a version of an app is, beside the data as they are. */
export interface AppCheck {
  readonly schema: SchemaPreview;
  /** The app's functions by path; equal texts are equal functions. */
  readonly functions: Readonly<Record<string, string>>;
  readonly crons: readonly WireCron[];
}

/**
 * Writer to main: the app is loaded, and from now on the writer makes tables and indexes fit its
 * schema, for as long as that takes. Said once, before the answer to Boot, unless the app is broken; by a reader that waits,
 * too.
 */
export interface Loaded {
  readonly type: "Loaded";
}

/** A cron of the app. */
export interface WireCron {
  readonly name: string;
  readonly schedule: CronDefinition["schedule"];
  readonly function: string;
  readonly functionKind: "mutation" | "action";
  readonly args: Record<string, unknown>;
}

/** A route of the app. */
export interface WireRoute {
  /** Names it to a runner. */
  readonly key: string;
  readonly method: string;
  readonly path: string;
  /** Whether it is for every path that begins with `path`. */
  readonly prefix: boolean;
}

/** An isolate's answer to Boot. */
export type BootAnswer =
  | {
    readonly type: "Ready";
    readonly functions: readonly (readonly [udfPath: string, info: FunctionInfo])[];
    /** Current ts; 0 for runners. */
    readonly ts: number;
    /** The newest committed group, by the writer: how main learns the fate of a half-answered batch. */
    readonly lastGroup: string | null;
    /** The app's crons, by the writer. */
    readonly crons?: readonly WireCron[];
    /** The app's HTTP routes, by the writer. */
    readonly routes?: readonly WireRoute[];
    /** Where the history stands that a writer follows, or that is kept elsewhere. */
    readonly reached?: Reached;
    /** By a writer whose start was a commit: from it on another version is served. */
    readonly named?: boolean;
    /** By a writer that has changed tables or indexes, or which version is served: what a reader knew of them is old. */
    readonly changed?: boolean;
    /** By a reader that was asked to look. */
    readonly check?: AppCheck;
  }
  | { readonly type: "Broken"; readonly message: string };

/** How a call ended, on the wire. */
export type WireOutcome =
  | { readonly value: number; readonly logLines: readonly string[] }
  | { readonly error: CallError; readonly logLines: readonly string[] };

export interface WireCall {
  readonly udfPath: string;
  readonly args: Record<string, unknown>;
  readonly identity: Identity;
  readonly origin: CallOrigin;
}

export interface WireMutation extends WireCall {
  readonly replay?: ReplayKey;
  readonly failedWith?: CallError;
  readonly lineage?: Lineage;
}

/** What a run read and wrote, in the order of `RunUse`. */
export type WireUse = readonly [
  documentsRead: number,
  indexRowsRead: number,
  documentsWritten: number,
  indexRowsWritten: number,
];

/** Main to writer: run these mutations in order, committing in groups. */
export interface Batch {
  readonly type: "Batch";
  /** Unique over the life of the database: `<server start>-<count>`. */
  readonly batch: string;
  readonly calls: readonly WireMutation[];
}

/**
 * Writer to main: every call of the batch has run, and the last group is about to be committed. The next batch may be sent
 * now, so that it is there when the commit is done; it begins when this one's answers have left. The commit may still fail,
 * which the group then says. A group of one call is not announced.
 */
export interface Committing {
  readonly type: "Committing";
  readonly batch: string;
}

/**
 * A mutation's answer; what stands last is left out when it says nothing. `result` is a segment's position, or an error.
 */
export type WireAnswer = readonly [
  ts: number,
  result: number | CallError,
  logLines?: readonly string[],
  replayed?: boolean,
];

/**
 * Writer to main, after a commit: the answers of `calls[from]` onwards. The same text is kept in the database as the last
 * group, in the group's own transaction, so that main can learn the fate of a batch from a new writer.
 */
export interface Group extends WireEntries {
  readonly type: "Group";
  readonly batch: string;
  readonly from: number;
  readonly answers: readonly WireAnswer[];
  /** Of each answer how many ms its run took and its {@linkcode WireUse}: five numbers one after the other. */
  readonly uses?: readonly number[];
  /** Current ts after the group. */
  readonly ts: number;
  /** The batch takes longer than it should: the calls behind these are not run, others may come before them. */
  readonly ends?: true;
}

/** A place in the history of a database: behind which journal row. */
export interface Reached {
  readonly generation: string;
  readonly seq: number;
  readonly ts: number;
  readonly sum: string;
}

/** Writer to main: this row, whose body is the frame's segment, has to be kept before its group is committed. */
export interface KeepRow {
  readonly type: "KeepRow";
  /** `null`: the group has no row, and only asks whether this server still leads. */
  readonly row: readonly [seq: number, tsBefore: number, ts: number, at: number, sum: string] | null;
}

/** Main to writer: what became of the row. */
export interface RowKept {
  readonly type: "RowKept";
  /** `null`: the group has no row. */
  readonly seq: number | null;
  /** Why it was not kept; `null`: it was, and the group is to be committed. */
  readonly refused: RowRefusal | null;
}

/** Why a row was not kept. */
export interface RowRefusal {
  readonly message: string;
  /** Whether it is known that nobody has it: the same call may succeed later. */
  readonly known: boolean;
}

/** Main to a writer that follows: commit these journal rows as one group. */
export interface ApplyRows {
  readonly type: "ApplyRows";
  readonly rows: readonly (readonly [
    seq: number,
    tsBefore: number,
    ts: number,
    at: number,
    sum: string,
    /** A segment's position. */
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
  /** They do not go on from where this database stands, and never will. */
  readonly unfit: boolean;
}

/** Main to writer: journal rows of a generation up to this one are safe elsewhere. */
export interface JournalConfirmed {
  readonly type: "JournalConfirmed";
  readonly generation: string;
  readonly seq: number;
}

/** Main to writer: this generation of the journal cannot be gone on with. */
export interface JournalRestart {
  readonly type: "JournalRestart";
  readonly generation: string;
  readonly reason: "lost" | "overflow";
}

/** Main to reader: open a snapshot, answer Pinned, run the queries in order, close the snapshot after the last. */
export interface RunWave {
  readonly type: "RunWave";
  readonly wave: number;
  readonly queries: readonly WireCall[];
  /** Other readers are to have the same snapshot: wait for WaveGo after Pinned. */
  readonly together?: true;
}

/**
 * Main to a reader that waits with its snapshot: run the queries, with `more` of them behind its own; open the snapshot
 * again and answer Pinned, because another reader found a newer one; or let go of it and forget the wave.
 */
export interface WaveGo {
  readonly type: "WaveGo";
  readonly wave: number;
  readonly what: "run" | "again" | "drop";
  readonly more?: readonly WireCall[];
}

export interface Pinned {
  readonly type: "Pinned";
  readonly wave: number;
  readonly ts: number;
}

/** Reader to main: the answers of `queries[from]` onwards. `last` says that the snapshot is closed. */
export interface WaveAnswers {
  readonly type: "WaveAnswers";
  readonly wave: number;
  readonly from: number;
  readonly answers: readonly {
    readonly outcome: WireOutcome;
    readonly readSet: ReadSet;
    readonly scope: AuthScope;
    readonly nondeterministic: boolean;
    readonly durationMs: number;
    readonly use?: WireUse;
  }[];
  readonly last: boolean;
}

/** Main to runner: run an action. */
export interface RunAction extends WireCall {
  readonly type: "RunAction";
  /** Its name in what both say of it. Nobody can guess it: what comes under it comes from who runs it. */
  readonly call: number;
  /** How many the runner was given up to this one. */
  readonly order: number;
}

/** Runner to main: an action ended. */
export interface ActionDone {
  readonly type: "ActionDone";
  readonly call: number;
  readonly outcome: WireOutcome;
}

/** Runner to main: `ctx.runQuery`, `ctx.runMutation` or `ctx.runAction` of a running action, whose identity it has. */
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
 * Main to runner: answer a request of a route. Its body follows in frames of bytes, then BodyEnd. The runner sends
 * ResponseHead, the body in frames of bytes, and ActionDone (with a result without meaning) when all is sent, or with the
 * error that came in between. Both sides send no more of a body than the other has said it took (body_stream.ts).
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

/** Main to runner: the request's body is complete, or has broken off. */
export interface BodyEnd {
  readonly type: "BodyEnd";
  readonly call: number;
  readonly error: string | null;
}

/** Main to runner: nobody waits for the response any more. */
export interface CancelRequest {
  readonly type: "CancelRequest";
  readonly call: number;
}

/** Runner to main: what a response begins with. */
export interface ResponseHead {
  readonly type: "ResponseHead";
  readonly call: number;
  readonly status: number;
  readonly statusText: string;
  readonly headers: WireHeaders;
  readonly hasBody: boolean;
}

/** Both ways: so many bytes of the other's body were taken, so many more may come. */
export interface BodyTaken {
  readonly type: "BodyTaken";
  readonly call: number;
  readonly bytes: number;
}

/** Runner to main: the handler does not want the rest of the request's body. */
export interface BodyUnwanted {
  readonly type: "BodyUnwanted";
  readonly call: number;
}

/** Main to runner: are you alive? A runner answers at once unless app code blocks it. */
export interface Beat {
  readonly type: "Beat";
}

/** What main and a runner say about requests, beside RunRequest and ActionDone. */
export type RequestMessage = BodyEnd | BodyTaken | Bytes | CancelRequest;
export type ResponseMessage = BodyTaken | BodyUnwanted | Bytes | ResponseHead;

export type ToIsolate =
  | Boot
  | Fitted
  | Batch
  | JournalConfirmed
  | JournalRestart
  | ApplyRows
  | RowKept
  | RunWave
  | WaveGo
  | RunAction
  | SubAnswer
  | Beat
  | RunRequest
  | RequestMessage;
export type FromIsolate =
  | Loaded
  | BootAnswer
  | Committing
  | Group
  | KeepRow
  | RowsApplied
  | RowsRefused
  | Pinned
  | WaveAnswers
  | ActionDone
  | SubCall
  | Beat
  | ResponseMessage;
