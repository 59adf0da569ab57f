/** Observers of function runs. Nothing is measured without one. */
import type { CallTrace, EndedRequest } from "../call_trace.ts";
import type { FunctionCall, RunUse } from "../host_port.ts";
import type { Outcome } from "../outcome.ts";
import type { RunEnding } from "../run_endings.ts";
import { isRunTimeout } from "./outcomes.ts";

/** `route`: a request to one of the app's HTTP routes. */
export type RunKind = "query" | "mutation" | "action" | "route";

export interface RunEnd {
  readonly outcome: Outcome;
  /** Queries: duration of the run. Mutations: from acceptance to commit. Actions: from acceptance to end. */
  readonly ms: number;
  /**
   * Without arguments if they are unknown here, or those of another function. Without origin if another
   * process has reported the run.
   */
  readonly call:
    & Pick<FunctionCall, "udfPath" | "identity" | "trace">
    & Partial<Pick<FunctionCall, "args" | "origin">>;
  /** Request id. */
  readonly request: number;
  /** ts of a mutation's commit or a query's snapshot. `null` for others. */
  readonly ts: number | null;
  /** Hash of the version of the app's code that served it. `null` if the code is not stored in versions. */
  readonly version: string | null;
  /** Duration of the function itself, if known. */
  readonly durationMs: number;
  readonly queuedMs: number;
  /** Resource usage. `null` outside of a transaction, and for runs that were stopped. */
  readonly use: RunUse | null;
  /** When it ended, in milliseconds since the epoch. Absent if it ends now. */
  readonly endedAt?: number;
}

let lastRequest = 0;

/** Returns a new request id, about the time in µs. Ids increase, also across restarts. */
export function nextRequest(): number {
  return lastRequest = Math.max(lastRequest + 1, Date.now() * 1000);
}

/** Attaches the request id to a run's error. */
export function numberError(outcome: Outcome, request: number): void {
  if (!outcome.ok) outcome.error.request = request;
}

/** Combines several observers. */
export function observeAll(observers: readonly RunObserver[]): RunObserver {
  const tracer = observers.find(({ startTrace }) => startTrace !== undefined);
  return {
    ...(tracer && { startTrace: () => tracer.startTrace?.() }),
    runEnded(kind, end) {
      for (const observer of observers) observer.runEnded(kind, end);
    },
    groupCommitted(calls) {
      for (const observer of observers) observer.groupCommitted?.(calls);
    },
    requestEnded(request) {
      for (const observer of observers) observer.requestEnded?.(request);
    },
  };
}

/** Called often: must be fast and must not throw. */
export interface RunObserver {
  /** Called at the end of a run. Recorded answers of mutations are not runs. */
  runEnded(kind: RunKind, end: RunEnd): void;
  /** Called when the writer has committed this many calls at once. */
  groupCommitted?(calls: number): void;
  /** Starts a trace for an action that has none, so that its calls belong to it. Absent without telemetry and `--dev`. */
  startTrace?(): CallTrace | undefined;
  /** Called when a request to a worker process that belongs to an exported trace has ended. */
  requestEnded?(request: EndedRequest): void;
}

export function endingOf(outcome: Outcome): RunEnding {
  if (outcome.ok) return "success";
  const { kind, retryable } = outcome.error;
  if (kind !== "internal") return "user_error";
  if (retryable) return "refused";
  return isRunTimeout(outcome.error) ? "timeout" : "error";
}
