/** Token bucket that limits the frames of one socket. */

export interface FrameRate {
  readonly burst: number;
  readonly perSecond: number;
}

export class FrameRateLimiter {
  readonly #rate: FrameRate;
  #tokens: number;
  #refilledAt: number;

  constructor(rate: FrameRate, now: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#refilledAt = now;
  }

  /** Counts a frame. Returns whether it is allowed. */
  take(now: number): boolean {
    if (--this.#tokens >= 0) return true;
    const { burst, perSecond } = this.#rate;
    // Reads the clock only when the tokens are used up. A clock set back refills nothing.
    const refilled = Math.min(
      burst,
      this.#tokens + 1 + Math.max(0, now - this.#refilledAt) * perSecond / 1000,
    );
    this.#tokens = refilled - 1;
    this.#refilledAt = now;
    return this.#tokens >= 0;
  }
}
