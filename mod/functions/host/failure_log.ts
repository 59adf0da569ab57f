/** Logs runs that failed with an internal error, rate limited. */
import type { Log } from "../../kit/log.ts";
import { RateLimiter } from "../../kit/rate_limit.ts";
import { failureLogLimits } from "../limits.ts";
import { functionLimits } from "../../limits.ts";
import { errorIdOf, type Outcome } from "../outcome.ts";
import type { Clock, Timer } from "../../kit/clock.ts";

export interface FailureLogOptions {
  readonly log: Log;
  readonly clock: Clock;
}

/** Disposal logs the number of suppressed failures and stops logging. */
export class FailureLog implements Disposable {
  readonly #options: FailureLogOptions;
  /** Limits each function separately, so that one failing function does not hide others. */
  readonly #ofFunction: RateLimiter;
  readonly #ofAll: RateLimiter;
  #suppressed = 0;
  /** Some of the functions with suppressed failures. */
  readonly #suppressedPaths = new Set<string>();
  /** Set while there are suppressed failures to report. */
  #timer: Timer | null = null;
  #closed = false;

  constructor(options: FailureLogOptions) {
    const { clock } = options;
    const { ofFunction, ofAll, functionsMax } = failureLogLimits;
    this.#options = options;
    this.#ofFunction = new RateLimiter({ ...ofFunction, keysMax: functionsMax, now: () => clock.now() });
    this.#ofAll = new RateLimiter({ ...ofAll, keysMax: 1, now: () => clock.now() });
  }

  /** Records the end of a run. Call once for each. */
  note(udfPath: string, outcome: Outcome): void {
    if (outcome.ok || outcome.error.kind !== "internal" || this.#closed) return;
    const path = cut(udfPath);
    if (this.#ofFunction.take(path) > 0 || this.#ofAll.take("") > 0) return this.#suppress(path);
    const { message, stack, code } = outcome.error;
    const request = errorIdOf(outcome.error);
    this.#options.log("error", "A function failed", {
      udfPath: path,
      ...(request !== null && { request }),
      message: cut(message),
      ...(stack !== undefined && { stack: cut(stack) }),
      ...(code !== undefined && { code }),
    });
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#timer?.cancel();
    if (this.#suppressed > 0) this.#reportSuppressed();
  }

  #suppress(path: string): void {
    this.#suppressed++;
    if (this.#suppressedPaths.size < failureLogLimits.suppressedNamesMax) this.#suppressedPaths.add(path);
    this.#timer ??= this.#options.clock.after(
      failureLogLimits.suppressedReportMs,
      () => this.#reportSuppressed(),
    );
  }

  #reportSuppressed(): void {
    this.#options.log("warn", "Suppressed log entries of failed functions", {
      count: this.#suppressed,
      functions: cut([...this.#suppressedPaths].join(", ")),
    });
    this.#timer = null;
    this.#suppressed = 0;
    this.#suppressedPaths.clear();
  }
}

function cut(text: string): string {
  const max = functionLimits.errorCharsMax;
  return text.length > max ? `${text.slice(0, max - 3)}...` : text;
}
