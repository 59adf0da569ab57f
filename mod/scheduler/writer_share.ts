/**
 * How many scheduled mutations may be with the writer at once: few when they are slow, because calls of clients stand
 * beside. What they take is measured for each function, so that a slow one goes alone and holds up no other.
 */
import { schedulerLimits } from "../functions/limits.ts";

/** Weight of the newest mutation in the mean of its function. */
const NEWEST_WEIGHT = 0.1;
/** Functions remembered; the one that ran longest ago gives way. */
const FUNCTIONS_MAX = 1_000;

export class WriterShare {
  readonly #meanMs = new Map<string, number>();

  /** Takes note of how long a mutation kept the writer. A slow one counts at once, fast ones bit by bit. */
  took(name: string, ms: number): void {
    const mean = this.#meanMs.get(name) ?? ms;
    this.#meanMs.delete(name);
    this.#meanMs.set(name, ms > mean ? ms : mean + (ms - mean) * NEWEST_WEIGHT);
    const [oldest] = this.#meanMs.keys();
    if (this.#meanMs.size > FUNCTIONS_MAX && oldest !== undefined) this.#meanMs.delete(oldest);
  }

  /** Whether one more may be given to the writer beside those it has. The first of a function goes alone. */
  admits(name: string, running: readonly string[]): boolean {
    const { mutationsAimedMs, mutationsAtOnceMax } = schedulerLimits;
    if (running.length === 0) return true;
    if (running.length >= mutationsAtOnceMax) return false;
    const sum = [name, ...running].reduce((ms, each) => ms + this.#expected(each), 0);
    return sum <= mutationsAimedMs;
  }

  #expected(name: string): number {
    return this.#meanMs.get(name) ?? schedulerLimits.mutationsAimedMs;
  }
}
