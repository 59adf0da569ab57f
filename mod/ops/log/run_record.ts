/** One function run, in its stored form and as administrators read it. */
import { type RunEnding, runEndings } from "../../functions/run_endings.ts";
import { requestIdText } from "../../functions/outcome.ts";

export const runKinds = ["query", "mutation", "action", "route"] as const;
export type LoggedKind = (typeof runKinds)[number];

export const runOutcomes: readonly RunEnding[] = runEndings;
export type RunOutcome = RunEnding;

/** Levels of log lines. A run stores the index plus one; 0 means no lines. */
export const lineLevels = ["DEBUG", "INFO", "WARN", "ERROR"] as const;
export type LineLevel = (typeof lineLevels)[number];

export interface RunError {
  readonly kind: "user" | "args" | "unknown_function" | "internal";
  readonly message: string;
  readonly code?: string;
  /** Stack trace in the author's files. */
  readonly stack?: string;
}

/** A run on its way to the log worker. A tuple, because thousands are written and read per second. */
export type RunRecord = readonly [
  /** End time, milliseconds since the epoch. */
  at: number,
  udfPath: string,
  /** Index of {@linkcode runKinds}. */
  kind: number,
  /** The caller's principal; `null` for anonymous callers and the server. */
  caller: string | null,
  /** Index of {@linkcode runOutcomes}. */
  outcome: number,
  /** Highest level of its lines. */
  level: number,
  /** The request ID as a number. */
  request: number,
  /** Commit of a mutation, snapshot of a query. */
  ts: number | null,
  durationMs: number,
  queuedMs: number,
  documentsRead: number,
  indexRowsRead: number,
  documentsWritten: number,
  indexRowsWritten: number,
  error: RunError | null,
  logLines: readonly string[],
  /** Hash of the version that served it; `null` if unknown. Absent in runs of earlier releases. */
  version?: string | null,
];

/** Index of the version in a {@linkcode RunRecord}. */
export const VERSION_INDEX = 16;

/** A run as administrators read it. */
export interface LoggedRun {
  /** Increases with each run. */
  readonly id: number;
  readonly at: number;
  readonly function: string;
  readonly kind: LoggedKind;
  readonly caller: string | null;
  readonly outcome: RunOutcome;
  readonly level: LineLevel | null;
  readonly requestId: string;
  readonly ts: number | null;
  /** Hash of the version of the app's code that served it; `null` if unknown. */
  readonly version: string | null;
  readonly durationMs: number;
  readonly queuedMs: number;
  readonly documentsRead: number;
  readonly indexRowsRead: number;
  readonly documentsWritten: number;
  readonly indexRowsWritten: number;
  readonly error: RunError | null;
  readonly logLines: readonly string[];
  /** Arguments as JSON, possibly cut; `null` if they were not logged. */
  readonly args: string | null;
}

/** Begins the line with the arguments, which precedes the others. */
export const ARGS_MARK = "[ARGS] ";

/** Parses a request ID; `null` if it is invalid. */
export function parseRequestId(text: string): number | null {
  if (!/^[0-9a-z]{1,11}$/.test(text)) return null;
  const request = parseInt(text, 36);
  return Number.isSafeInteger(request) ? request : null;
}

export function loggedRun(id: number, record: RunRecord): LoggedRun {
  const [at, udfPath, kind, caller, outcome, level, request, ts, durationMs, queuedMs, ...rest] = record;
  const [documentsRead, indexRowsRead, documentsWritten, indexRowsWritten, error, lines, version = null] =
    rest;
  const hasArgs = lines[0]?.startsWith(ARGS_MARK) === true;
  return {
    id,
    at,
    function: udfPath,
    kind: runKinds[kind] ?? "query",
    caller,
    outcome: runOutcomes[outcome] ?? "error",
    level: lineLevels[level - 1] ?? null,
    requestId: requestIdText(request),
    ts,
    version,
    durationMs,
    queuedMs,
    documentsRead,
    indexRowsRead,
    documentsWritten,
    indexRowsWritten,
    error,
    logLines: hasArgs ? lines.slice(1) : lines,
    args: hasArgs ? lines[0]?.slice(ARGS_MARK.length) ?? null : null,
  };
}

/** Text that filters search: the error and the lines, or empty. */
export function searchedText(error: RunError | null, logLines: readonly string[]): string {
  if (error === null) return logLines.join("\n");
  const { message, code = "", stack = "" } = error;
  return [message, code, stack, ...logLines].filter((part) => part !== "").join("\n");
}
