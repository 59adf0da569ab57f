/** Pauses after what the server could not do, such as writing to a full disk: each longer than the one before. */
import { schedulerLimits } from "../functions/limits.ts";

export class Backoff {
  #failures = 0;
  /** Nothing is tried before this time. */
  #until = -Infinity;

  /** When something may be tried again. */
  get until(): number {
    return this.#until;
  }

  failed(now: number): void {
    // Failures that come together are one.
    if (now < this.#until) return;
    const { retryMs, retryMsMax } = schedulerLimits;
    this.#until = now + Math.min(retryMsMax, retryMs * 2 ** this.#failures++);
  }

  succeeded(): void {
    this.#failures = 0;
    this.#until = -Infinity;
  }
}
