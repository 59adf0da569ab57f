/** How many scheduled mutations may be with the writer at once: few when they are slow, because calls of clients stand behind. */
import { schedulerLimits } from "../functions/limits.ts";

/** Weight of the newest mutation in the mean. */
const NEWEST_WEIGHT = 0.1;

export class WriterShare {
  #meanMs = 0;

  /** Takes note of how long a mutation kept the writer. A slow one counts at once, fast ones bit by bit. */
  took(ms: number): void {
    this.#meanMs = ms > this.#meanMs ? ms : this.#meanMs + (ms - this.#meanMs) * NEWEST_WEIGHT;
  }

  get atOnce(): number {
    const { mutationsAimedMs, mutationsAtOnceMax } = schedulerLimits;
    const fitting = Math.floor(mutationsAimedMs / Math.max(this.#meanMs, Number.EPSILON));
    return Math.max(1, Math.min(mutationsAtOnceMax, fitting));
  }
}
