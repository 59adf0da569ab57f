/**
 * Limits the scheduled mutations queued at the writer, so that calls of clients do not wait long. Durations are measured per
 * function: slow mutations run alone.
 */
import { LRUCache } from "lru-cache";
import { schedulerLimits } from "../functions/limits.ts";

/** Weight of the newest duration in the moving average. */
const NEWEST_WEIGHT = 0.1;
/** Maximum number of tracked functions; the least recently run is evicted. */
const FUNCTIONS_MAX = 1_000;

export class MutationConcurrency {
  readonly #meanMs = new LRUCache<string, number>({ max: FUNCTIONS_MAX });

  /** Records how long a mutation occupied the writer. Increases apply immediately, decreases gradually. */
  record(name: string, ms: number): void {
    const mean = this.#meanMs.get(name) ?? ms;
    this.#meanMs.set(name, ms > mean ? ms : mean + (ms - mean) * NEWEST_WEIGHT);
  }

  /** Whether another mutation may be queued. The first run of a function runs alone. */
  admits(name: string, running: readonly string[]): boolean {
    const { mutationsAimedMs, mutationsAtOnceMax } = schedulerLimits;
    if (running.length === 0) return true;
    if (running.length >= mutationsAtOnceMax) return false;
    const sum = [name, ...running].reduce((ms, each) => ms + this.#expected(each), 0);
    return sum <= mutationsAimedMs;
  }

  #expected(name: string): number {
    return this.#meanMs.peek(name) ?? schedulerLimits.mutationsAimedMs;
  }
}
