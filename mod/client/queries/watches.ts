/** Subscribers of queries: callbacks for results, and one-shot waits for the next result. */
import { type FunctionError, reportUnhandled } from "../errors.ts";
import type { QueryResult } from "./query_set.ts";

/** A subscriber's callbacks. */
export interface Watcher {
  readonly onResult: (value: unknown) => void;
  /** Without it, a failure becomes an unhandled rejection. */
  readonly onError: ((error: FunctionError) => void) | undefined;
}

interface Watch extends Watcher {
  /** The result passed to the watcher last. */
  delivered: QueryResult | undefined;
  ended: boolean;
}

interface Wait {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class Watches {
  readonly #result: (key: string) => QueryResult | undefined;
  readonly #watches = new Map<string, Set<Watch>>();
  readonly #waits = new Map<string, Set<Wait>>();
  /** Queries whose watchers must be called; callbacks may add to it. */
  readonly #due = new Set<string>();
  #delivering = false;

  /** Returns the result to show for a query. */
  constructor(result: (key: string) => QueryResult | undefined) {
    this.#result = result;
  }

  /** Calls the watcher with every result. An existing result is delivered asynchronously. */
  add(key: string, watcher: Watcher): { end: () => void } {
    const watch: Watch = { ...watcher, delivered: undefined, ended: false };
    const watches = this.#watches.get(key) ?? new Set();
    this.#watches.set(key, watches.add(watch));
    if (this.#result(key) !== undefined) queueMicrotask(() => this.deliver([key]));
    const end = () => {
      watch.ended = true;
      watches.delete(watch);
      if (watches.size === 0 && this.#watches.get(key) === watches) this.#watches.delete(key);
    };
    return { end };
  }

  /** Number of queries with a one-shot wait. */
  get waiting(): number {
    return this.#waits.size;
  }

  /** Waits for the next result from the server. */
  wait(key: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const waits = this.#waits.get(key) ?? new Set();
      this.#waits.set(key, waits.add({ resolve, reject }));
    });
  }

  /** Calls the watchers of queries whose shown result differs from the last one delivered. */
  deliver(keys: Iterable<string>): void {
    for (const key of keys) this.#due.add(key);
    if (this.#delivering) return;
    this.#delivering = true;
    try {
      // Changes made by callbacks are delivered after them, so that each watcher sees results in order.
      for (const key of this.#due) {
        this.#due.delete(key);
        for (const watch of [...this.#watches.get(key) ?? []]) this.#deliverTo(watch, this.#result(key));
      }
    } finally {
      this.#delivering = false;
    }
  }

  /** Settles the one-shot waits for these queries. */
  arrived(keys: Iterable<string>, resultOf: (key: string) => QueryResult | undefined): void {
    for (const key of keys) {
      const result = resultOf(key);
      const waits = this.#waits.get(key);
      if (waits === undefined || result === undefined) continue;
      this.#waits.delete(key);
      for (const { resolve, reject } of waits) {
        if (result.ok) resolve(result.value);
        else reject(result.error);
      }
    }
  }

  /** Removes all watchers and rejects all waits. */
  closeAll(error: Error): void {
    for (const watches of this.#watches.values()) {
      for (const watch of watches) watch.ended = true;
    }
    this.#watches.clear();
    const waits = [...this.#waits.values()].flatMap((set) => [...set]);
    this.#waits.clear();
    for (const { reject } of waits) reject(error);
  }

  #deliverTo(watch: Watch, result: QueryResult | undefined): void {
    if (watch.ended || result === undefined || result === watch.delivered) return;
    watch.delivered = result;
    try {
      if (result.ok) watch.onResult(result.value);
      else if (watch.onError === undefined) reportUnhandled(result.error);
      else watch.onError(result.error);
    } catch (error) {
      reportUnhandled(error);
    }
  }
}
