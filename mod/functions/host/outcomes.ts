/** Converts outcomes and calls to and from their wire form. */
import { functionLimits } from "../../limits.ts";
import type { FunctionCall, MutationAnswer, MutationCall, QueryCall, RunUse } from "../host_port.ts";
import { type CallError, failed, type Outcome, unavailable } from "../outcome.ts";
import type { WireAnswer, WireMutation, WireOutcome, WireQuery, WireUse } from "../wire/messages.ts";

/** Returns the outcome in a frame. Throws if it is malformed: the isolate is then no longer trusted. `base`: see `QueryCall`. */
export function fromWire(
  wire: WireOutcome,
  segments: readonly string[],
  base: Outcome | null = null,
): Outcome {
  if (!Array.isArray(wire.logLines)) throw new TypeError("An outcome has no log lines");
  if ("error" in wire) return { ok: false, error: wire.error, logLines: wire.logLines };
  const { logLines, kept, spliced } = wire;
  const segment = segments[wire.value];
  const value = segment === undefined || spliced === undefined
    ? segment
    : splicedText(base, segment, spliced);
  // No JSON text is empty.
  if (value === undefined || value === "") throw new RangeError(`The frame has no segment ${wire.value}`);
  return kept === undefined ? { ok: true, value, logLines } : { ok: true, value, logLines, kept };
}

/** Replaces the middle of a result. Throws like {@linkcode fromWire}. */
function splicedText(
  base: Outcome | null,
  middle: string,
  [head, tail]: readonly [head: number, tail: number],
): string {
  if (
    base?.ok !== true || base.kept === undefined ||
    !(head >= 0 && tail >= 0 && head + tail <= base.value.length)
  ) {
    throw new RangeError("An outcome continues a result that main does not have");
  }
  return base.value.slice(0, head) + middle + base.value.slice(base.value.length - tail);
}

/** Returns a mutation's answer in a group. Throws if it is malformed, like {@linkcode fromWire}. */
export function answerFromWire(
  [ts, result, logLines = [], replayed = false]: WireAnswer,
  segments: readonly string[],
): MutationAnswer {
  if (typeof result !== "number" && typeof result?.kind !== "string") {
    throw new TypeError("An answer has no result");
  }
  const wire = typeof result === "number" ? { value: result, logLines } : { error: result, logLines };
  return { outcome: fromWire(wire, segments), ts, replayed };
}

/** Resource usage of a run. */
export function runUse(
  [documentsRead, indexRowsRead, documentsWritten, indexRowsWritten]: WireUse,
): RunUse {
  return { documentsRead, indexRowsRead, documentsWritten, indexRowsWritten };
}

/** Converts an outcome for a frame of its own. */
export function toWire(outcome: Outcome): { readonly wire: WireOutcome; readonly segments: string[] } {
  if (!outcome.ok) return { wire: { error: outcome.error, logLines: outcome.logLines }, segments: [] };
  return { wire: { value: 0, logLines: outcome.logLines }, segments: [outcome.value] };
}

/** Serializes a mutation. The text is measured, queued and sent unchanged. */
export function callText(call: FunctionCall & Pick<MutationCall, "replay" | "failedWith">): string {
  const { udfPath, args, identity, origin, replay, failedWith, lineage } = call;
  // Undefined fields are omitted.
  return JSON.stringify(
    { udfPath, args, identity, origin, replay, failedWith, lineage } satisfies WireCallText,
  );
}

/** Serializes a query. */
export function queryText({ udfPath, args, identity, origin, base }: QueryCall): string {
  const call: WireQuery = { udfPath, args, identity, origin };
  if (base === undefined) return JSON.stringify(call);
  return JSON.stringify({ ...call, base: base?.ok === true ? base.kept ?? "" : "" } satisfies WireQuery);
}

/** Serializes a failed mutation: only its failure is recorded. */
export function failedCallText(text: string, failedWith: CallError): string {
  const { identity, origin, replay } = JSON.parse(text) as WireMutation;
  return JSON.stringify(
    {
      udfPath: "",
      args: {},
      identity,
      origin,
      replay,
      failedWith,
      lineage: undefined,
    } satisfies WireCallText,
  );
}

type WireCallText = { [Field in keyof Required<WireMutation>]: WireMutation[Field] | undefined };

/** The outcome of a call rejected by a full queue. */
export function overloaded(what: string): Outcome {
  return failed("internal", `The server is overloaded: ${what}`, { retryable: true });
}

/** The outcome of a call whose caller is temporarily blocked from the function. */
export function refusedFor(udfPath: string): Extract<Outcome, { ok: false }> {
  const message = `The server is overloaded: calls of ${udfPath} have timed out repeatedly`;
  const error: CallError = {
    kind: "user",
    message,
    data: { code: "overloaded", data: null },
    retryable: true,
  };
  return { ok: false, error, logLines: [] };
}

/** The outcome of calls that did not start before the host ended. */
export function stopping(): Outcome {
  return unavailable("The server is stopping");
}

/** Time limits of queries and mutations. */
export interface Timeouts {
  readonly queryMs: number;
  readonly mutationMs: number;
}

/** The contract's limits. */
export const usualTimeouts: Timeouts = {
  queryMs: functionLimits.queryTimeoutMs,
  mutationMs: functionLimits.mutationTimeoutMs,
};

/** The outcome of a call that exceeded its time limit. */
export function tookTooLong(what: "query" | "mutation" | "action", ms: number): Outcome {
  return failed("internal", `The ${what} took longer than ${ms / 1000} s`, { code: "limit" });
}

/** Whether this is the error of {@linkcode tookTooLong}, recognized by its text: a recorded failure has nothing else. */
export function isRunTimeout({ kind, message }: CallError): boolean {
  return kind === "internal" && /^The (query|mutation|action) took longer than [\d.]+ s$/.test(message);
}

export function endedIsolate(what: string, detail: string): Outcome {
  return failed("internal", `The ${what} ended its isolate (${detail})`, { code: "limit" });
}
