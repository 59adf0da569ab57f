/** Growing delays after server failures such as a full disk. */
import { schedulerLimits } from "../functions/limits.ts";

export class Backoff {
  #failures = 0;
  /** Earliest time of the next attempt. */
  #until = -Infinity;

  /** Earliest time of the next attempt. */
  get until(): number {
    return this.#until;
  }

  failed(now: number): void {
    // Simultaneous failures count once.
    if (now < this.#until) return;
    const { retryMs, retryMsMax } = schedulerLimits;
    this.#until = now + Math.min(retryMsMax, retryMs * 2 ** this.#failures++);
  }

  succeeded(): void {
    this.#failures = 0;
    this.#until = -Infinity;
  }
}
