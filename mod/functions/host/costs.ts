/** Cost estimates of functions in milliseconds. Only slow functions are tracked. */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../kit/bounded_lru.ts";
import { isolateLimits } from "../limits.ts";

/** Estimate for unknown functions. */
const USUAL_MS = 0.1;
/** Decay factor of the estimate after a fast run. */
const FADING = 0.5;
/** Tracked functions. The one that ran least recently is evicted. */
const FUNCTIONS_MAX = 10_000;

export class Costs {
  readonly #ms = new LRUCache<string, number>(entriesMax(FUNCTIONS_MAX));

  /** Whether no function is tracked. */
  get empty(): boolean {
    return this.#ms.size === 0;
  }

  of(work: string): number {
    return this.#ms.peek(work) ?? USUAL_MS;
  }

  /** Records a run. Slow runs take effect immediately, fast ones gradually. */
  took(work: string, ms: number): void {
    const known = this.#ms.peek(work);
    if (known === undefined && ms < isolateLimits.costMinMs) return;
    const cost = Math.max(ms, (known ?? 0) * FADING);
    if (cost < isolateLimits.costMinMs) this.#ms.delete(work);
    else this.#ms.set(work, cost);
  }
}
