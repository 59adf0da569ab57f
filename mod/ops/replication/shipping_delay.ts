/**
 * When what was committed is shipped: so early that it is there when it is due, going by how long shipping took lately. Where
 * it takes long, or nothing is known of it yet, a segment may leave twice as often for that, and no more often.
 */
import { replicationLimits } from "../limits.ts";

/** Times that count; the longest of them is what is reckoned with. */
const SAMPLES_MAX = 8;

export class ShippingDelay {
  readonly #everyMs: number;
  readonly #times: number[] = [];

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** A segment took so long, from when it was asked for to when it was known to be safe. */
  record(ms: number): void {
    this.#times.push(Math.max(0, ms));
    if (this.#times.length > SAMPLES_MAX) this.#times.shift();
  }

  /** From a commit to when its shipping begins, when nothing else waits. */
  get waitMs(): number {
    const most = this.#everyMs * replicationLimits.leadShareMax;
    // The first segments of a process take longest.
    const longest = this.#times.length === 0 ? most : Math.max(...this.#times);
    return this.#everyMs - Math.min(longest, most);
  }
}
