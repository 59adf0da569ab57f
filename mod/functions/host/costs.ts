/** Cost estimates of functions in milliseconds. Only slow functions are tracked. */
import { isolateLimits } from "../limits.ts";

/** Estimate for unknown functions. */
const USUAL_MS = 0.1;
/** Decay factor of the estimate after a fast run. */
const FADING = 0.5;
/** Tracked functions. The oldest is evicted. */
const FUNCTIONS_MAX = 10_000;

export class Costs {
  readonly #ms = new Map<string, number>();

  /** Whether no function is tracked. */
  get empty(): boolean {
    return this.#ms.size === 0;
  }

  of(work: string): number {
    return this.#ms.get(work) ?? USUAL_MS;
  }

  /** Records a run. Slow runs take effect immediately, fast ones gradually. */
  took(work: string, ms: number): void {
    const known = this.#ms.get(work);
    if (known === undefined && ms < isolateLimits.costToldMs) return;
    const cost = Math.max(ms, (known ?? 0) * FADING);
    this.#ms.delete(work);
    if (cost < isolateLimits.costToldMs) return;
    if (this.#ms.size >= FUNCTIONS_MAX) {
      const [oldest] = this.#ms.keys();
      if (oldest !== undefined) this.#ms.delete(oldest);
    }
    this.#ms.set(work, cost);
  }
}
