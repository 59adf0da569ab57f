/** One run of a function as the execution log keeps it, and as administrators read it. */
import { type RunEnding, runEndings } from "../../functions/run_endings.ts";
import { requestIdText } from "../../functions/outcome.ts";

export const runKinds = ["query", "mutation", "action", "route"] as const;
export type LoggedKind = (typeof runKinds)[number];

export const runOutcomes: readonly RunEnding[] = runEndings;
export type RunOutcome = RunEnding;

/** Levels of log lines, by their position plus one; 0 is a run without lines. */
export const lineLevels = ["DEBUG", "INFO", "WARN", "ERROR"] as const;
export type LineLevel = (typeof lineLevels)[number];

/** What a run failed with. */
export interface RunError {
  readonly kind: "user" | "args" | "unknown_function" | "internal";
  readonly message: string;
  /** Code of a user error. */
  readonly code?: string;
  /** Names the author's files. */
  readonly stack?: string;
}

/** A run on its way to the log process: a list, because thousands a second are written and read. */
export type RunRecord = readonly [
  /** When it ended, milliseconds since the epoch. */
  at: number,
  udfPath: string,
  /** Position in {@linkcode runKinds}. */
  kind: number,
  /** The caller's principal; `null` for anonymous callers and the service itself. */
  caller: string | null,
  /** Position in {@linkcode runOutcomes}. */
  outcome: number,
  /** Highest level among its lines. */
  level: number,
  /** What is shown as the request id, as a number. */
  request: number,
  /** Of a mutation its commit's, of a query its snapshot's. */
  ts: number | null,
  durationMs: number,
  queuedMs: number,
  documentsRead: number,
  indexRowsRead: number,
  documentsWritten: number,
  indexRowsWritten: number,
  error: RunError | null,
  logLines: readonly string[],
];

/** A run as administrators read it. */
export interface LoggedRun {
  /** Newer runs have larger ones. */
  readonly id: number;
  readonly at: number;
  readonly function: string;
  readonly kind: LoggedKind;
  readonly caller: string | null;
  readonly outcome: RunOutcome;
  readonly level: LineLevel | null;
  readonly requestId: string;
  readonly ts: number | null;
  readonly durationMs: number;
  readonly queuedMs: number;
  readonly documentsRead: number;
  readonly indexRowsRead: number;
  readonly documentsWritten: number;
  readonly indexRowsWritten: number;
  readonly error: RunError | null;
  readonly logLines: readonly string[];
}

/** The number of a request id; `null` for a text that is none. */
export function parseRequestId(text: string): number | null {
  if (!/^[0-9a-z]{1,11}$/.test(text)) return null;
  const request = parseInt(text, 36);
  return Number.isSafeInteger(request) ? request : null;
}

export function loggedRun(id: number, record: RunRecord): LoggedRun {
  const [at, udfPath, kind, caller, outcome, level, request, ts, durationMs, queuedMs, ...rest] = record;
  const [documentsRead, indexRowsRead, documentsWritten, indexRowsWritten, error, logLines] = rest;
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
    durationMs,
    queuedMs,
    documentsRead,
    indexRowsRead,
    documentsWritten,
    indexRowsWritten,
    error,
    logLines,
  };
}

/** What a text filter looks into: the error and the lines. Empty when there is neither. */
export function searchedText(error: RunError | null, logLines: readonly string[]): string {
  if (error === null) return logLines.join("\n");
  const { message, code = "", stack = "" } = error;
  return [message, code, stack, ...logLines].filter((part) => part !== "").join("\n");
}
