/** A live query as a test watches it: results come one after another and are waited for. */
import type { FunctionError } from "../client/mod.ts";

/** A result is waited for this long, in milliseconds of the machine's clock. */
const WAIT_MS = 5_000;

type Event<Result> = { readonly value: Result } | { readonly error: FunctionError };

export class TestSubscription<Result> implements Disposable {
  /** All results so far, oldest first. */
  readonly results: Result[] = [];
  readonly #what: string;
  readonly #untaken: Event<Result>[] = [];
  readonly #waiting = new Set<() => void>();
  #end: (() => void) | null = null;

  /** `start` begins the subscription and gives back what ends it. */
  constructor(
    what: string,
    start: (onResult: (value: Result) => void, onError: (error: FunctionError) => void) => () => void,
  ) {
    this.#what = what;
    this.#end = start(
      (value) => {
        this.results.push(value);
        this.#arrived({ value });
      },
      (error) => this.#arrived({ error }),
    );
  }

  /**
   * The oldest result that was not taken yet, now or when it comes. Rejects with the query's `FunctionError` when it
   * failed instead, and after five seconds without a result.
   */
  async next(): Promise<Result> {
    if (this.#untaken.length === 0) await this.#change("has no further result");
    const event = this.#untaken.shift();
    if (event === undefined) throw new Error(`The subscription to ${this.#what} was read by two at once`);
    if ("error" in event) throw event.error;
    return event.value;
  }

  /** The first result from now on, the newest included, for which the condition holds. */
  async until(condition: (value: Result) => boolean): Promise<Result> {
    const newest = this.results.at(-1);
    if (this.results.length > 0 && condition(newest as Result)) {
      this.#untaken.length = 0;
      return newest as Result;
    }
    this.#untaken.length = 0;
    for (;;) {
      const value = await this.next();
      if (condition(value)) return value;
    }
  }

  /** Ends the subscription. */
  [Symbol.dispose](): void {
    this.#end?.();
    this.#end = null;
  }

  #arrived(event: Event<Result>): void {
    this.#untaken.push(event);
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #change(missing: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(wake);
        reject(new Error(`The subscription to ${this.#what} ${missing} within ${WAIT_MS / 1000} seconds`));
      }, WAIT_MS);
      const wake = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#waiting.add(wake);
    });
  }
}
