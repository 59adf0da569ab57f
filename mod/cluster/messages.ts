/** What a leader and a follower say to each other. The short names are on the wire for each call. */
import { z } from "zod";
import type { RunEnd, RunKind, ServedApp } from "../functions/host/mod.ts";
import type { FunctionCall, MutationAnswer, MutationCall } from "../functions/host_port.ts";
import type { Identity } from "../functions/identity.ts";
import type { CallError, Outcome } from "../functions/outcome.ts";

const identity = z.object({
  principal: z.string().nullable(),
  userId: z.string().nullable(),
  adminId: z.string().nullable(),
  sessionId: z.string().nullable(),
  claims: z.record(z.string(), z.unknown()).optional(),
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
const calls = {
  request: z.number().optional(),
  udfPath: z.string(),
  args: z.record(z.string(), z.unknown()),
  identity,
  origin: z.enum(["client", "server", "system"]),
  caller: z.object({ turn: z.string(), blame: z.string() }).optional(),
  lineage: lineage.optional(),
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

const run = z.object({
  kind: z.enum(["query", "mutation", "action", "route"]),
  udfPath: z.string(),
  identity,
  request: z.number(),
  ts: z.number().nullable(),
  ms: z.number(),
  durationMs: z.number(),
  queuedMs: z.number(),
  use: runUse.nullable(),
  error: error.nullable(),
  logLines: z.array(z.string()),
});

/** What a follower has to do at the moment. */
const figures = z.object({
  sockets: z.number(),
  subscriptions: z.number(),
  sharedQueries: z.number(),
  transitions: z.number(),
  waves: z.number(),
  wavesUnderWay: z.number(),
  queriesWaiting: z.number(),
  callsWaiting: z.number(),
});

const fromFollower = z.discriminatedUnion("t", [
  z.object({ t: z.literal("mutate"), id, call: mutationCall }),
  z.object({ t: z.literal("act"), id, call: z.object(calls) }),
  /** Whose token is this, of an issuer that the leader knows? */
  z.object({ t: z.literal("verify"), id, token: z.string() }),
  /** Queries wait, as they were told to with this number. */
  z.object({ t: z.literal("held"), n: z.int() }),
  /** It serves. */
  z.object({ t: z.literal("ready") }),
  z.object({
    t: z.literal("runs"),
    runs: z.array(run),
    cached: z.array(z.string()),
    requests: z.array(z.object({ url: z.string(), status: z.int(), count: z.int().positive() })),
  }),
  z.object({ t: z.literal("figures"), figures }),
  /** Whether it is ready to lead as soon as the leader lets go. */
  z.object({ t: z.literal("prepared"), ok: z.boolean() }),
]);

/** A run that ended at a follower; how it ended without its value. */
export interface FollowerRun extends Omit<RunEnd, "call" | "outcome"> {
  readonly kind: RunKind;
  readonly udfPath: string;
  readonly identity: Identity;
  /** `null`: it succeeded. */
  readonly error: CallError | null;
  readonly logLines: readonly string[];
}

/** What has happened at a follower since it last told. */
export interface FollowerReport {
  readonly runs: readonly FollowerRun[];
  /** Functions whose results were given without a run. */
  readonly cached: readonly string[];
  /** Requests that it has answered itself, by part of the server and status. */
  readonly requests: readonly { readonly url: string; readonly status: number; readonly count: number }[];
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
  | { readonly t: "prepared"; readonly ok: boolean };

/** Throws for what a follower does not say. */
export function parseFromFollower(message: unknown): FromFollower {
  // A part that is absent in JSON is absent here, where the schema's type would allow `undefined`.
  return fromFollower.parse(message) as FromFollower;
}

/** What a follower tells of itself. */
const hello = z.object({
  /** Its name in the log and in figures. */
  name: z.string().max(200),
  /** Whether it is to be told of commits, because it reads the leader's database. */
  commits: z.boolean(),
  /** Whether what follows are bytes of requests, and no messages. */
  requests: z.literal(true).optional(),
});

export type Hello = Readonly<Pick<z.infer<typeof hello>, "name" | "commits">> & { readonly requests?: true };

export function parseHello(told: unknown): Hello {
  return hello.parse(told) as Hello;
}

/** What the leader tells a follower first; the app only to one that reads its database. */
export interface Welcome {
  readonly ts: number;
  readonly app: ServedApp | null;
}

/** An answer's outcome without its value, which is the frame's text. */
export type WireEnd =
  | { readonly ok: true; readonly logLines: readonly string[] }
  | { readonly ok: false; readonly error: CallError; readonly logLines: readonly string[] };

/** From the leader, which is believed. */
export type FromLeader =
  | {
    readonly t: "mutated";
    readonly id: number;
    readonly end: WireEnd;
    readonly answer: Omit<MutationAnswer, "outcome">;
  }
  | { readonly t: "acted"; readonly id: number; readonly end: WireEnd; readonly ts: number }
  | { readonly t: "verified"; readonly id: number; readonly verification: unknown }
  /** The text: the packed entries, or nothing. */
  | { readonly t: "commits"; readonly ts: number }
  /** Commits up to this one were made of which nothing was told. */
  | { readonly t: "missed"; readonly ts: number }
  | { readonly t: "ended"; readonly ended: unknown }
  | { readonly t: "hold"; readonly n: number }
  | { readonly t: "release"; readonly app: ServedApp | null }
  | { readonly t: "stop" }
  /** The leader is told to stop: this follower is to make ready to lead. */
  | { readonly t: "prepare" }
  /** It ends soon: what is asked from now on is for the next leader. What it has taken it still answers. */
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

/** The call as the other side understands it: what stands in its place is told by whoever asked. */
export function wireCall<Call extends FunctionCall>(call: Call & Pick<MutationCall, "reportAs">): Call {
  const { reportAs: _, ...wired } = call;
  return wired as Call;
}
