/** Log records of the server and of function runs, in the form that the exporter takes. */
import type { CallTrace } from "../../functions/call_trace.ts";
import type { RunEnd, RunKind } from "../../functions/host/mod.ts";
import type { RunLogLine } from "../../functions/log_lines.ts";
import { requestIdText } from "../../functions/outcome.ts";
import type { LoggedLine, LogLevel } from "../../kit/log.ts";
import { logLimits, telemetryLimits } from "../limits.ts";
import type { Attributes, ReadableLogRecord } from "./sdk/sdk.js";
import { hrTime, type SpanSource } from "./spans.ts";

/** Severity numbers of OpenTelemetry. */
const SEVERITIES: Record<LogLevel, number> = { debug: 5, info: 9, warn: 13, error: 17 };

/** Attributes of fields that spans have under another name, or the conventions of OpenTelemetry define. */
const NAMES: Readonly<Record<string, string>> = {
  udfPath: "code.function.name",
  request: "syncline.request_id",
  error: "exception.message",
  message: "exception.message",
  stack: "exception.stacktrace",
};

interface RecordParts {
  readonly at: number;
  readonly level: LogLevel;
  readonly text: string;
  readonly attributes: Attributes;
  /** Absent for lines that belong to no run. */
  readonly trace?: CallTrace;
}

function recordOf(
  { at, level, text, attributes, trace }: RecordParts,
  source: SpanSource,
): ReadableLogRecord {
  const time = hrTime(at);
  return {
    ...source,
    hrTime: time,
    hrTimeObserved: time,
    severityText: level.toUpperCase(),
    severityNumber: SEVERITIES[level],
    body: truncated(text),
    attributes,
    ...(trace && {
      spanContext: { traceId: trace.traceId, spanId: trace.spanId, traceFlags: trace.sampled ? 1 : 0 },
    }),
    droppedAttributesCount: 0,
  };
}

/** Returns the record of a line of the server's log. */
export function serverRecord(
  { at, level, message, fields }: LoggedLine,
  source: SpanSource,
): ReadableLogRecord {
  const attributes = Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      NAMES[key] ?? key,
      typeof value === "string" ? truncated(value) : value,
    ]),
  );
  return recordOf({ at, level, text: message, attributes }, source);
}

/** Returns the record of a line that a function logged in a run. */
export function runRecord(
  { level, text }: RunLogLine,
  { kind, end: { call, request }, at, trace, source }: {
    readonly kind: RunKind;
    readonly end: Pick<RunEnd, "call" | "request">;
    readonly at: number;
    readonly trace: CallTrace;
    readonly source: SpanSource;
  },
): ReadableLogRecord {
  const attributes = {
    "code.function.name": call.udfPath.slice(0, logLimits.pathCharsMax),
    "syncline.kind": kind,
    "syncline.request_id": requestIdText(request),
  };
  return recordOf({ at, level, text, attributes, trace }, source);
}

/** Returns about the number of characters of a record. */
export function recordChars({ body, attributes }: ReadableLogRecord): number {
  const values = Object.values(attributes);
  return values.reduce<number>((sum, value) => sum + String(value).length, body.length + 200);
}

function truncated(text: string): string {
  return text.length > telemetryLimits.logCharsMax ? text.slice(0, telemetryLimits.logCharsMax) : text;
}
