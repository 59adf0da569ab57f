/** Outcomes between the wire and the rest of the server, and the calls' texts on the wire. */
import { functionLimits } from "../../limits.ts";
import type { FunctionCall, MutationAnswer, MutationCall, RunUse } from "../host_port.ts";
import { type CallError, failed, type Outcome, unavailable } from "../outcome.ts";
import type { WireAnswer, WireMutation, WireOutcome, WireUse } from "../wire/messages.ts";

/** The outcome a frame carries. Throws when it has none: the isolate that sent it is not to be trusted any more. */
export function fromWire(wire: WireOutcome, segments: readonly string[]): Outcome {
  if (!Array.isArray(wire.logLines)) throw new TypeError("An outcome has no log lines");
  if ("error" in wire) return { ok: false, error: wire.error, logLines: wire.logLines };
  const value = segments[wire.value];
  // Every JSON text has characters.
  if (value === undefined || value === "") throw new RangeError(`The frame has no segment ${wire.value}`);
  return { ok: true, value, logLines: wire.logLines };
}

/** The answer of a mutation that a group carries. Throws like {@linkcode fromWire}, and for a result that is none. */
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

/** What a run used. */
export function runUse(
  [documentsRead, indexRowsRead, documentsWritten, indexRowsWritten]: WireUse,
): RunUse {
  return { documentsRead, indexRowsRead, documentsWritten, indexRowsWritten };
}

/** An outcome as a frame of its own carries it. */
export function toWire(outcome: Outcome): { readonly wire: WireOutcome; readonly segments: string[] } {
  if (!outcome.ok) return { wire: { error: outcome.error, logLines: outcome.logLines }, segments: [] };
  return { wire: { value: 0, logLines: outcome.logLines }, segments: [outcome.value] };
}

/** A call's JSON text, made once: it is measured, kept in queues and put into frames as it is. */
export function callText(call: FunctionCall & Pick<MutationCall, "replay" | "failedWith">): string {
  const { udfPath, args, identity, origin, replay, failedWith, lineage } = call;
  // What is undefined is left out.
  return JSON.stringify(
    { udfPath, args, identity, origin, replay, failedWith, lineage } satisfies WireCallText,
  );
}

/** The text of a mutation that has failed, from the text it had: only its failure is to be recorded. */
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

/** The outcome of a call that a full queue refused. */
export function overloaded(what: string): Outcome {
  return failed("internal", `The server is overloaded: ${what}`, { retryable: true });
}

/** The outcome of a call whose caller is refused its function for a while. */
export function refusedFor(udfPath: string): Extract<Outcome, { ok: false }> {
  const message = `The server is overloaded: calls of ${udfPath} ran out of time again and again`;
  const error: CallError = {
    kind: "user",
    message,
    data: { code: "overloaded", data: null },
    retryable: true,
  };
  return { ok: false, error, logLines: [] };
}

/** The outcome of calls that were not begun when the host ends. */
export function stopping(): Outcome {
  return unavailable("The server is stopping");
}

/** How long queries and mutations may run. */
export interface Timeouts {
  readonly queryMs: number;
  readonly mutationMs: number;
}

/** What the contract says. */
export const usualTimeouts: Timeouts = {
  queryMs: functionLimits.queryTimeoutMs,
  mutationMs: functionLimits.mutationTimeoutMs,
};

/** The outcome of a call that ran longer than it may. */
export function tookTooLong(what: "query" | "mutation" | "action", ms: number): Outcome {
  return failed("internal", `The ${what} took longer than ${ms / 1000} s`, { code: "limit" });
}

/** Whether it is the error of {@linkcode tookTooLong}. Its text tells: that is all a recorded failure keeps. */
export function ranTooLong({ kind, message }: CallError): boolean {
  return kind === "internal" && /^The (query|mutation|action) took longer than [\d.]+ s$/.test(message);
}

/** The outcome of a call that brought its isolate down. */
export function endedIsolate(what: string, detail: string): Outcome {
  return failed("internal", `The ${what} ended its isolate (${detail})`, { code: "limit" });
}
