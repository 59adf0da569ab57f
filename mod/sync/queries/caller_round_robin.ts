/** Round robin of the callers of slow queries: the one whose last slow run is the oldest comes first. */
import { LRUCache } from "lru-cache";

/** Callers whose last slow run is recorded. */
const CALLERS_MAX = 10_000;

export class CallerRoundRobin {
  /** Number of the last slow run of each caller. */
  readonly #lastRuns = new LRUCache<string, number>({ max: CALLERS_MAX });
  #runs = 0;

  /** Returns the item to run next and records its run. `null` without items. */
  next<Item>(items: readonly Item[], callerOf: (item: Item) => string): Item | null {
    let next: { readonly item: Item; readonly caller: string; readonly lastRun: number } | null = null;
    for (const item of items) {
      const caller = callerOf(item);
      const lastRun = this.#lastRuns.peek(caller) ?? 0;
      if (next === null || lastRun < next.lastRun) next = { item, caller, lastRun };
    }
    if (next === null) return null;
    this.#lastRuns.set(next.caller, ++this.#runs);
    return next.item;
  }
}
