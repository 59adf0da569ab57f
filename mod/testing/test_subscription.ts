/** A live query observed by a test, which awaits its results one by one. */
import type { FunctionError } from "../client/mod.ts";

/** How long to wait for a result, in real milliseconds. */
const WAIT_MS = 5_000;

type Event<Result> = { readonly value: Result } | { readonly error: FunctionError };

export class TestSubscription<Result> implements Disposable {
  /** All results so far, oldest first. */
  readonly results: Result[] = [];
  readonly #what: string;
  readonly #untaken: Event<Result>[] = [];
  readonly #waiting = new Set<() => void>();
  #end: (() => void) | null = null;

  /** `start` begins the subscription and returns the function that ends it. */
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
   * Resolves to the oldest result that was not read yet. Rejects with the query's `FunctionError` if it failed instead, and
   * after five seconds without a result.
   */
  async next(): Promise<Result> {
    if (this.#untaken.length === 0) await this.#change("has no further result");
    const event = this.#untaken.shift();
    if (event === undefined) throw new Error(`The subscription to ${this.#what} was read concurrently`);
    if ("error" in event) throw event.error;
    return event.value;
  }

  /** Resolves to the first result, starting with the newest, for which the condition holds. */
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
