/** How runs end: told to the observer and the log, and counted against callers whose calls run out of time. */
import type { Clock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { Caller, FunctionCall, MutationAnswer, MutationCall, QueryAnswer } from "../host_port.ts";
import type { Outcome } from "../outcome.ts";
import { FailureLog } from "./failure_log.ts";
import { ranTooLong, type Timeouts } from "./outcomes.ts";
import { Refusals } from "./refusals.ts";
import { nextRequest, numberError, type RunEnd, type RunObserver } from "./run_observer.ts";
import type { ActionEnd } from "./runners/runner_pool.ts";

export interface RunReportsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly timeouts: Timeouts;
  readonly observer?: RunObserver;
}

/** Once it is disposed of, nothing more is told to the log: what is cut off from then on has not failed. */
export class RunReports implements Disposable {
  readonly #options: RunReportsOptions;
  readonly #failures: FailureLog;
  readonly #refusals: Refusals;

  constructor(options: RunReportsOptions) {
    const { log, clock } = options;
    this.#options = options;
    this.#failures = new FailureLog({ log, clock });
    this.#refusals = new Refusals({ log, clock });
  }

  refuses(udfPath: string, { blame }: Caller): boolean {
    return this.#refusals.refuses(udfPath, blame);
  }

  /** Whether the call is not to be run, because its caller's calls of this function ran out of time again and again. */
  isRefused({ udfPath, origin, caller }: FunctionCall): boolean {
    return caller !== undefined && origin !== "system" && this.refuses(udfPath, caller);
  }

  /** The time a mutation is measured from; read only where somebody wants to know. */
  now(): number {
    const { observer, clock } = this.#options;
    return observer === undefined ? 0 : clock.now();
  }

  mutationEnded(call: MutationCall, { outcome, ts, run }: MutationAnswer, since: number): void {
    const request = call.request ?? nextRequest();
    numberError(outcome, request);
    this.#note(call, outcome);
    const { observer } = this.#options;
    if (observer === undefined) return;
    const ms = this.now() - since;
    const { durationMs = ms, queuedMs = 0, use = null } = run ?? {};
    const seen = call.reportAs?.(outcome);
    const told = seen === undefined ? call : { ...call, udfPath: seen.udfPath };
    observer.runEnded("mutation", {
      outcome: seen?.outcome ?? outcome,
      ms,
      call: told,
      request,
      ts,
      durationMs,
      queuedMs,
      use,
    });
  }

  queryEnded(call: FunctionCall, answer: QueryAnswer): void {
    const request = call.request ?? nextRequest();
    const { outcome, durationMs, queuedMs = 0, ts, use = null } = answer;
    numberError(outcome, request);
    this.#note(call, outcome);
    const { observer, timeouts } = this.#options;
    // A run that was cut short does not tell how long it was.
    const late = !outcome.ok && ranTooLong(outcome.error);
    const ms = late ? timeouts.queryMs : durationMs;
    observer?.runEnded("query", { outcome, ms, call, request, ts, durationMs: ms, queuedMs, use });
  }

  /** Of an action that a runner ran, or the request of a route. */
  actionEnded(kind: "action" | "route", end: ActionEnd): void {
    this.#note(end.call, end.outcome);
    this.#options.observer?.runEnded(kind, actionEnd(end));
  }

  /** Of an action that main ran itself. */
  mainActionEnded(
    call: FunctionCall,
    { outcome, ms }: { readonly outcome: Outcome; readonly ms: number },
  ): void {
    const request = call.request ?? nextRequest();
    numberError(outcome, request);
    this.#failures.note(call.udfPath, outcome);
    this.#options.observer?.runEnded(
      "action",
      actionEnd({ call: { ...call, request }, outcome, ms, queuedMs: 0 }),
    );
  }

  [Symbol.dispose](): void {
    this.#failures[Symbol.dispose]();
  }

  #note({ udfPath, origin, caller }: FunctionCall, outcome: Outcome): void {
    this.#failures.note(udfPath, outcome);
    // What the service runs for many, as it does scheduled functions, is nobody's alone.
    if (caller === undefined || origin === "system" || outcome.ok || !ranTooLong(outcome.error)) return;
    this.#refusals.ranOutOfTime(udfPath, caller.blame);
  }
}

function actionEnd({ call, outcome, ms, queuedMs }: ActionEnd): RunEnd {
  const request = call.request ?? nextRequest();
  const durationMs = Math.max(0, ms - queuedMs);
  return { outcome, ms, call, request, ts: null, durationMs, queuedMs, use: null };
}
