/** Spans of requests and function runs, in the form that the exporter takes. */
import { type CallTrace, type EndedRequest, randomHex } from "../../functions/call_trace.ts";
import { endingOf, type RunEnd, type RunKind } from "../../functions/host/mod.ts";
import { type CallError, requestIdText } from "../../functions/outcome.ts";
import { logLimits, telemetryLimits } from "../limits.ts";
import type { Attributes, HrTime, InstrumentationScope, ReadableSpan, Resource } from "./sdk/sdk.js";

/** The sender of all spans. */
export interface SpanSource {
  readonly resource: Resource;
  readonly instrumentationScope: InstrumentationScope;
}

export interface SpanParts {
  readonly name: string;
  readonly trace: CallTrace;
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly until: number;
  readonly isServer?: boolean;
  readonly attributes?: Attributes;
  /** Message of the error; `null` or absent if there is none. */
  readonly error?: string | null;
}

export function spanOf(
  { name, trace, from, until, isServer = false, attributes = {}, error = null }: SpanParts,
  source: SpanSource,
): ReadableSpan {
  const { traceId, spanId, parentId } = trace;
  const context = { traceId, spanId, traceFlags: 1 };
  return {
    ...source,
    name,
    kind: isServer ? 1 : 0,
    spanContext: () => context,
    ...(parentId !== undefined && { parentSpanContext: { traceId, spanId: parentId, traceFlags: 1 } }),
    startTime: hrTime(from),
    endTime: hrTime(Math.max(from, until)),
    status: error === null
      ? { code: 0 }
      : { code: 2, message: error.slice(0, telemetryLimits.errorCharsMax) },
    attributes,
    events: [],
    links: [],
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** The parts of a run that are spans of their own, in milliseconds after its start. */
export type Phase = readonly [name: "queue" | "run" | "commit", from: number, until: number];

/** Returns the phases of a run that was queued or has committed. */
export function phasesOf(kind: RunKind, { outcome, durationMs, queuedMs, ...end }: RunEnd): readonly Phase[] {
  const ms = totalMs(kind, { queuedMs, ms: end.ms });
  const begun = Math.min(queuedMs, ms);
  const ran = Math.min(begun + durationMs, ms);
  const commits = kind === "mutation" && outcome.ok;
  return [
    ...(queuedMs > 0 ? [["queue", 0, begun] as const] : []),
    ...(queuedMs > 0 || commits ? [["run", begun, ran] as const] : []),
    ...(commits ? [["commit", ran, ms] as const] : []),
  ];
}

/** The duration of a query does not include its time in the queue. */
function totalMs(kind: RunKind, { queuedMs, ms }: Pick<RunEnd, "queuedMs" | "ms">): number {
  return kind === "query" ? queuedMs + ms : ms;
}

/** Returns the span of a request or message. */
export function requestSpan(
  { name, trace, from, until, status }: EndedRequest,
  source: SpanSource,
): ReadableSpan {
  const error = status !== null && status >= 500 ? `HTTP ${status}` : null;
  const attributes = status === null ? {} : { "http.response.status_code": status };
  return spanOf({ name, trace, from, until, isServer: true, attributes, error }, source);
}

/** Returns the spans of a run that ended at `now`, and of its phases. */
export function runSpans(
  kind: RunKind,
  end: RunEnd,
  { phases, trace, now, source }: {
    readonly phases: readonly Phase[];
    readonly trace: CallTrace;
    readonly now: number;
    readonly source: SpanSource;
  },
): ReadableSpan[] {
  const { call, outcome, request, ts, use } = end;
  const from = now - totalMs(kind, end);
  const path = call.udfPath.slice(0, logLimits.pathCharsMax);
  const error = outcome.ok ? null : outcome.error;
  const span = spanOf({
    name: `${kind} ${path}`,
    trace,
    from,
    until: now,
    attributes: {
      "code.function.name": path,
      "syncline.kind": kind,
      "syncline.outcome": endingOf(outcome),
      "syncline.request_id": requestIdText(request),
      ...(ts !== null && { "syncline.ts": ts }),
      ...(use !== null && {
        "syncline.documents_read": use.documentsRead,
        "syncline.documents_written": use.documentsWritten,
      }),
      ...(error?.data && { "syncline.error_code": error.data.code }),
    },
    error: failureOf(error),
  }, source);
  const { traceId, spanId: parentId, sampled } = trace;
  return [
    span,
    ...phases.map(([name, start, until]) => {
      const trace = { traceId, spanId: randomHex(8), parentId, sampled };
      return spanOf({ name, trace, from: from + start, until: from + until }, source);
    }),
  ];
}

/** Message of a failure of the function or the server. An error that the app throws on purpose is an answer. */
function failureOf(error: CallError | null): string | null {
  return error?.kind === "internal" ? error.message : null;
}

export function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
