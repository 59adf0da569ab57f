/** Messages between a leader and its followers. The names are short, because each call carries them. */
import { z } from "zod";
import type { CallTrace, EndedRequest } from "../functions/call_trace.ts";
import type { RunEnd, RunKind, ServedApp } from "../functions/host/mod.ts";
import type { FunctionCall, MutationAnswer, MutationCall } from "../functions/host_port.ts";
import { type Identity, keyKinds } from "../functions/identity.ts";
import type { CallError, Outcome } from "../functions/outcome.ts";
import type { LoggedLine } from "../kit/log.ts";
import type { FrameKind, RoomChange } from "../presence/mod.ts";

const identity = z.object({
  principal: z.string().nullable(),
  userId: z.string().nullable(),
  adminId: z.string().nullable(),
  sessionId: z.string().nullable(),
  claims: z.record(z.string(), z.unknown()).optional(),
  key: z.object({ name: z.string(), kinds: z.array(z.enum(keyKinds)), functions: z.array(z.string()) })
    .optional(),
});
const data = z.object({ code: z.string(), data: z.unknown() }).nullable();
const error = z.object({
  kind: z.enum(["user", "args", "unknown_function", "internal"]),
  message: z.string(),
  data,
  retryable: z.literal(true).optional(),
  stack: z.string().optional(),
});
const lineage = z.object({ root: z.string(), generation: z.number() });
const trace = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentId: z.string().optional(),
  sampled: z.boolean(),
});
const calls = {
  request: z.number().optional(),
  udfPath: z.string(),
  args: z.record(z.string(), z.unknown()),
  identity,
  origin: z.enum(["client", "server", "system"]),
  caller: z.object({ queueKey: z.string(), blame: z.string() }).optional(),
  lineage: lineage.optional(),
  trace: trace.optional(),
};
const mutationCall = z.object({
  ...calls,
  replay: z.object({ sessionId: z.string(), requestId: z.number() }).optional(),
  work: z.string().optional(),
  failedWith: error.optional(),
});
const id = z.int().nonnegative();
const runUse = z.object({
  documentsRead: z.number(),
  indexRowsRead: z.number(),
  documentsWritten: z.number(),
  indexRowsWritten: z.number(),
});

/** The schema removes fields that it does not name, so it has to name all of them. */
const run = z.object(
  {
    kind: z.enum(["query", "mutation", "action", "route"]),
    udfPath: z.string(),
    identity,
    request: z.number(),
    ts: z.number().nullable(),
    version: z.string().nullable(),
    ms: z.number(),
    durationMs: z.number(),
    queuedMs: z.number(),
    use: runUse.nullable(),
    error: error.nullable(),
    logLines: z.array(z.string()),
    trace: trace.optional(),
    endedAt: z.number(),
  } satisfies Record<keyof FollowerRun, z.ZodType>,
);

const endedRequest = z.object({
  name: z.string(),
  trace,
  from: z.number(),
  until: z.number(),
  status: z.int().nullable(),
});

const loggedLine = z.object({
  at: z.number(),
  level: z.enum(["debug", "info", "warn", "error"]),
  message: z.string(),
  fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});

const member = { room: z.string(), id: z.string() };
const roomChange = z.discriminatedUnion("t", [
  z.object({
    t: z.literal("join"),
    ...member,
    userId: z.string().nullable(),
    info: z.string(),
    state: z.string(),
    connection: z.int(),
    needsWhole: z.boolean(),
  }),
  z.object({ t: z.literal("update"), ...member, state: z.string() }),
  z.object({ t: z.literal("leave"), ...member, grace: z.boolean() }),
]);

/** Current load of a follower. */
const figures = z.object({
  sockets: z.number(),
  subscriptions: z.number(),
  sharedQueries: z.number(),
  transitions: z.number(),
  refreshBatches: z.number(),
  refreshBatchesInFlight: z.number(),
  queriesWaiting: z.number(),
  callsWaiting: z.number(),
});

const fromFollower = z.discriminatedUnion("t", [
  z.object({ t: z.literal("mutate"), id, call: mutationCall }),
  z.object({ t: z.literal("act"), id, call: z.object(calls) }),
  /** Verifies a token of an external issuer. */
  z.object({ t: z.literal("verify"), id, token: z.string() }),
  /** Queries are paused, as the `hold` with this number requested. */
  z.object({ t: z.literal("held"), n: z.int() }),
  /** The follower serves. */
  z.object({ t: z.literal("ready") }),
  z.object({
    t: z.literal("runs"),
    runs: z.array(run),
    cached: z.array(z.string()),
    requests: z.array(z.object({ url: z.string(), status: z.int(), count: z.int().positive() })),
    traced: z.array(endedRequest),
    logged: z.array(loggedLine),
  }),
  z.object({ t: z.literal("figures"), figures }),
  /** Changes of its members in rooms. */
  z.object({ t: z.literal("rooms"), changes: z.array(roomChange) }),
]);

/** A run of a follower, without its result. */
export interface FollowerRun extends Omit<RunEnd, "call" | "outcome" | "endedAt"> {
  readonly kind: RunKind;
  readonly udfPath: string;
  readonly identity: Identity;
  /** `null` if the run succeeded. */
  readonly error: CallError | null;
  readonly logLines: readonly string[];
  readonly trace?: CallTrace;
  /** Milliseconds since the epoch. */
  readonly endedAt: number;
}

/** Activity of a follower since its previous report. */
export interface FollowerReport {
  readonly runs: readonly FollowerRun[];
  /** Functions with results served from the cache. */
  readonly cached: readonly string[];
  /** HTTP requests that the follower answered, by path and status. */
  readonly requests: readonly { readonly url: string; readonly status: number; readonly count: number }[];
  /** Requests and messages of exported traces. Empty without `--otlp-endpoint`, as the next list. */
  readonly traced: readonly EndedRequest[];
  /** Lines of its log. */
  readonly logged: readonly LoggedLine[];
}

export type FollowerFigures = z.infer<typeof figures>;

export type FromFollower =
  | { readonly t: "mutate"; readonly id: number; readonly call: MutationCall }
  | { readonly t: "act"; readonly id: number; readonly call: FunctionCall }
  | { readonly t: "verify"; readonly id: number; readonly token: string }
  | { readonly t: "held"; readonly n: number }
  | { readonly t: "ready" }
  | { readonly t: "runs" } & FollowerReport
  | { readonly t: "figures"; readonly figures: FollowerFigures }
  | { readonly t: "rooms"; readonly changes: readonly RoomChange[] };

/** Throws if the message is not valid. */
export function parseFromFollower(message: unknown): FromFollower {
  // The type of the schema allows `undefined`, which JSON does not contain.
  return fromFollower.parse(message) as FromFollower;
}

/** First message of the leader. Contains the app only for followers that read its database. */
export interface Welcome {
  readonly ts: number;
  readonly app: ServedApp | null;
}

/** Outcome of a call without its value, which is the text of the frame. */
export type WireEnd =
  | { readonly ok: true; readonly logLines: readonly string[] }
  | { readonly ok: false; readonly error: CallError; readonly logLines: readonly string[] };

/** Not validated, because the leader is trusted. */
export type FromLeader =
  | {
    readonly t: "mutated";
    readonly id: number;
    readonly end: WireEnd;
    readonly answer: Omit<MutationAnswer, "outcome">;
  }
  | { readonly t: "acted"; readonly id: number; readonly end: WireEnd; readonly ts: number }
  | { readonly t: "verified"; readonly id: number; readonly verification: unknown }
  /** The text of the frame contains the packed entries; empty if there are none. */
  | { readonly t: "commits"; readonly ts: number }
  /** There are commits up to `ts` that were not sent. */
  | { readonly t: "missed"; readonly ts: number }
  | { readonly t: "ended"; readonly ended: unknown }
  /** The text of the frame is that of the room. */
  | { readonly t: "room"; readonly room: string; readonly kind: FrameKind }
  /** A member was not added to its room. */
  | { readonly t: "full"; readonly room: string; readonly id: string }
  | { readonly t: "hold"; readonly n: number }
  | { readonly t: "release"; readonly app: ServedApp | null }
  | { readonly t: "stop" }
  /** The leader stops soon. It answers earlier calls; later ones are for the next leader. */
  | { readonly t: "leaving" };

export function wireEnd(outcome: Outcome): { readonly end: WireEnd; readonly text: string } {
  const { logLines } = outcome;
  return outcome.ok
    ? { end: { ok: true, logLines }, text: outcome.value }
    : { end: { ok: false, error: outcome.error, logLines }, text: "" };
}

export function outcomeOf(end: WireEnd, text: string): Outcome {
  return end.ok ? { ok: true, value: text, logLines: end.logLines } : end;
}

/** Removes the part of a call that only this process uses. */
export function wireCall<Call extends FunctionCall>(call: Call & Pick<MutationCall, "reportAs">): Call {
  const { reportAs: _, ...wired } = call;
  return wired as Call;
}
