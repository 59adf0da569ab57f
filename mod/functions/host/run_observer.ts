/** Who wants to count runs of functions. Nothing is measured where there is none. */
import type { FunctionCall, RunUse } from "../host_port.ts";
import type { Outcome } from "../outcome.ts";
import type { RunEnding } from "../run_endings.ts";
import { ranTooLong } from "./outcomes.ts";

/** `route`: a request to one of the app's HTTP routes. */
export type RunKind = "query" | "mutation" | "action" | "route";

export interface RunEnd {
  readonly outcome: Outcome;
  /** Of a query's run; of a mutation from its acceptance to its commit; of an action from its acceptance to its end. */
  readonly ms: number;
  readonly call: Pick<FunctionCall, "udfPath" | "identity">;
  /** Number of its request. */
  readonly request: number;
  /** Of a mutation its commit's, of a query its snapshot's; `null` for others. */
  readonly ts: number | null;
  /** How long the function itself ran, as far as that is known. */
  readonly durationMs: number;
  /** How long it waited for its turn. */
  readonly queuedMs: number;
  /** What it read and wrote; `null` for what runs outside of a transaction, or was stopped. */
  readonly use: RunUse | null;
}

let lastRequest = 0;

/**
 * A number for a request: larger than all before it, those of earlier lives of the server included unless the clock was set
 * back. About its time in microseconds.
 */
export function nextRequest(): number {
  return lastRequest = Math.max(lastRequest + 1, Date.now() * 1000);
}

/** Lets whoever sees a run's error name the request it is found by. */
export function numberError(outcome: Outcome, request: number): void {
  if (!outcome.ok) outcome.error.request = request;
}

/** Several observers as one. */
export function observeAll(observers: readonly RunObserver[]): RunObserver {
  return {
    runEnded(kind, end) {
      for (const observer of observers) observer.runEnded(kind, end);
    },
    groupCommitted(calls) {
      for (const observer of observers) observer.groupCommitted?.(calls);
    },
  };
}

/** Called often: must be quick and must not throw. */
export interface RunObserver {
  /** A run has ended. Recorded answers of mutations are none. */
  runEnded(kind: RunKind, end: RunEnd): void;
  /** The writer has committed so many calls at once. */
  groupCommitted?(calls: number): void;
}

export function endingOf(outcome: Outcome): RunEnding {
  if (outcome.ok) return "success";
  const { kind, retryable } = outcome.error;
  if (kind !== "internal") return "user_error";
  if (retryable) return "refused";
  return ranTooLong(outcome.error) ? "timeout" : "error";
}
