/** Cost estimates by function and caller. Slow for one caller means slow for all not known to be fast: many could be slow. */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../../kit/bounded_lru.ts";
import { isolateLimits } from "../../limits.ts";
import { Costs } from "../costs.ts";
import type { QueryWork } from "./query_batch.ts";

export const SLOW_KNOWN_MS = 2 * isolateLimits.slowQueryMs;
/** The same for a query that was fast for this caller before: short stalls are normal on a busy machine. */
const SLOW_SURELY_MS = 2 * SLOW_KNOWN_MS;
/** Function and caller pairs known to be fast. The least recently used is evicted. */
const QUICK_MAX = 20_000;

export type CostOf = Pick<QueryWork, "cost" | "path">;

export class QueryCosts {
  readonly #ofCallers = new Costs();
  readonly #ofFunctions = new Costs();
  readonly #quick = new LRUCache<string, true>(entriesMax(QUICK_MAX));
  /** Functions that were fast for a caller, and slow for none since. */
  readonly #quickPaths = new LRUCache<string, true>(entriesMax(QUICK_MAX));

  /** Whether nothing is known to be slow. */
  get empty(): boolean {
    return this.#ofCallers.empty && this.#ofFunctions.empty;
  }

  /** Whether it was fast for this caller. */
  isQuick({ cost }: Pick<QueryWork, "cost">): boolean {
    return this.#quick.has(cost);
  }

  isSlow({ cost, path }: CostOf): boolean {
    if (this.#ofCallers.of(cost) >= SLOW_KNOWN_MS) return true;
    return !this.#quick.has(cost) && this.#ofFunctions.of(path) >= SLOW_KNOWN_MS;
  }

  /** Records a finished run. */
  took(work: CostOf, ms: number): void {
    if (ms >= SLOW_KNOWN_MS) return this.#slow(work, ms);
    if (this.#quick.get(work.cost) === undefined) {
      this.#quick.set(work.cost, true);
      this.#quickPaths.set(work.path, true);
    }
    if (this.empty) return;
    this.#ofCallers.took(work.cost, ms);
    this.#ofFunctions.took(work.path, ms);
  }

  /** Records a run in flight. */
  takes(work: CostOf, ms: number): void {
    const sure = this.#quick.has(work.cost)
      ? SLOW_SURELY_MS
      : this.#quickPaths.has(work.path)
      ? SLOW_KNOWN_MS
      : 0;
    if (ms < sure) return;
    this.#slow(work, Math.max(ms, SLOW_KNOWN_MS));
  }

  #slow({ cost, path }: CostOf, ms: number): void {
    this.#quick.delete(cost);
    this.#quickPaths.delete(path);
    this.#ofCallers.took(cost, ms);
    this.#ofFunctions.took(path, ms);
  }
}
