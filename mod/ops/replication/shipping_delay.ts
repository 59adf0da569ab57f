/**
 * Delay between a commit and its shipment. Shipping starts ahead of its due time by the duration of recent shipments, and at
 * most twice as often as the interval, also while their duration is unknown.
 */
import { replicationLimits } from "../limits.ts";

/** Number of recent shipments whose longest duration is used. */
const SAMPLES_MAX = 8;

export class ShippingDelay {
  readonly #everyMs: number;
  readonly #times: number[] = [];

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** Records the duration of a shipment, from its request to its confirmation. */
  record(ms: number): void {
    this.#times.push(Math.max(0, ms));
    if (this.#times.length > SAMPLES_MAX) this.#times.shift();
  }

  /** Delay between a commit and the start of its shipment if no other shipment is pending. */
  get waitMs(): number {
    const most = this.#everyMs * replicationLimits.leadShareMax;
    // The first segments of a process take longest.
    const longest = this.#times.length === 0 ? most : Math.max(...this.#times);
    return this.#everyMs - Math.min(longest, most);
  }
}
