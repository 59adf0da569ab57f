/** Limits how fast isolates of a role are restarted. */
import { isolateLimits } from "../../limits.ts";

const MINUTE_MS = 60_000;
const FIRST_PAUSE_MS = 100;
const PAUSE_MS_MAX = 5_000;

/** Starts within the last minute. */
export class Restarts {
  readonly #startedAt: number[] = [];

  /** Records a start and returns the delay before it. `failures` is the number of consecutive failed starts. */
  pauseMs(now: number, failures: number): number {
    while (this.#startedAt.length > 0 && now - (this.#startedAt[0] ?? now) > MINUTE_MS) {
      this.#startedAt.shift();
    }
    const often = this.#startedAt.length >= isolateLimits.restartsPerMinuteMax;
    if (often) this.#startedAt.shift();
    this.#startedAt.push(now);
    if (failures > 0) return Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * 2 ** (failures - 1));
    return often ? MINUTE_MS / isolateLimits.restartsPerMinuteMax : 0;
  }
}
