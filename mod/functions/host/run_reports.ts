/** Reports ended runs to the observer and the log, and counts timeouts per caller. */
import type { Clock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { Caller, FunctionCall, MutationAnswer, MutationCall, QueryAnswer } from "../host_port.ts";
import type { Outcome } from "../outcome.ts";
import { FailureLog } from "./failure_log.ts";
import { isRunTimeout, type Timeouts } from "./outcomes.ts";
import { CallerBlocks } from "./caller_blocks.ts";
import { nextRequest, numberError, type RunEnd, type RunObserver } from "./run_observer.ts";
import type { ActionEnd } from "./runners/runner_pool.ts";

export interface RunReportsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly timeouts: Timeouts;
  readonly observer?: RunObserver;
  /** Returns the hash of the served version, for runs whose isolate does not name one. */
  readonly version: () => string | null;
}

/** After disposal nothing is logged: runs that are cut off then have not failed. */
export class RunReports implements Disposable {
  readonly #options: RunReportsOptions;
  readonly #failures: FailureLog;
  readonly #refusals: CallerBlocks;

  constructor(options: RunReportsOptions) {
    const { log, clock } = options;
    this.#options = options;
    this.#failures = new FailureLog({ log, clock });
    this.#refusals = new CallerBlocks({ log, clock });
  }

  refuses(udfPath: string, { blame }: Caller): boolean {
    return this.#refusals.isBlocked(udfPath, blame);
  }

  /** Whether the caller is blocked from the function after repeated timeouts. */
  isRefused({ udfPath, origin, caller }: FunctionCall): boolean {
    return caller !== undefined && origin !== "system" && this.refuses(udfPath, caller);
  }

  /** Start time of a mutation. Read only if there is an observer. */
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
    // The arguments are those of the function that runs on its behalf.
    const { identity, origin, trace } = call;
    const reported = seen === undefined
      ? call
      : { udfPath: seen.udfPath, identity, origin, ...(trace && { trace }) };
    observer.runEnded("mutation", {
      outcome: seen?.outcome ?? outcome,
      ms,
      call: reported,
      request,
      ts,
      version: this.#options.version(),
      durationMs,
      queuedMs,
      use,
    });
  }

  queryEnded(
    call: FunctionCall,
    answer: Pick<QueryAnswer, "outcome" | "ts" | "version" | "durationMs" | "queuedMs" | "use">,
  ): void {
    const request = call.request ?? nextRequest();
    const { outcome, durationMs, queuedMs = 0, ts, use = null } = answer;
    const version = answer.version ?? this.#options.version();
    numberError(outcome, request);
    this.#note(call, outcome);
    const { observer, timeouts } = this.#options;
    // The duration of a run that was cut short is unknown.
    const late = !outcome.ok && isRunTimeout(outcome.error);
    const ms = late ? timeouts.queryMs : durationMs;
    observer?.runEnded("query", { outcome, ms, call, request, ts, version, durationMs: ms, queuedMs, use });
  }

  actionEnded(kind: "action" | "route", end: ActionEnd): void {
    this.#note(end.call, end.outcome);
    this.#options.observer?.runEnded(kind, this.#actionEnd(end));
  }

  mainActionEnded(
    call: FunctionCall,
    { outcome, ms }: { readonly outcome: Outcome; readonly ms: number },
  ): void {
    const request = call.request ?? nextRequest();
    numberError(outcome, request);
    this.#failures.note(call.udfPath, outcome);
    this.#options.observer?.runEnded(
      "action",
      this.#actionEnd({ call: { ...call, request }, outcome, ms, queuedMs: 0 }),
    );
  }

  #actionEnd({ call, outcome, ms, queuedMs, version = this.#options.version() }: ActionEnd): RunEnd {
    const request = call.request ?? nextRequest();
    const durationMs = Math.max(0, ms - queuedMs);
    return { outcome, ms, call, request, ts: null, version, durationMs, queuedMs, use: null };
  }

  [Symbol.dispose](): void {
    this.#failures[Symbol.dispose]();
  }

  #note({ udfPath, origin, caller }: FunctionCall, outcome: Outcome): void {
    this.#failures.note(udfPath, outcome);
    // Work of the service for many users, such as scheduled functions, has no single caller.
    if (caller === undefined || origin === "system" || outcome.ok || !isRunTimeout(outcome.error)) return;
    this.#refusals.recordTimeout(udfPath, caller.blame);
  }
}
