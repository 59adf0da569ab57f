/** How many frames one socket may send: so many at once, and so many a second after that. */

export interface Allowance {
  readonly burst: number;
  readonly perSecond: number;
}

export class FrameAllowance {
  readonly #allowance: Allowance;
  #left: number;
  #at: number;

  constructor(allowance: Allowance, now: number) {
    this.#allowance = allowance;
    this.#left = allowance.burst;
    this.#at = now;
  }

  /** Counts a frame. Returns whether it was allowed. */
  take(now: number): boolean {
    if (--this.#left >= 0) return true;
    const { burst, perSecond } = this.#allowance;
    // The clock is looked at only when the frames counted so far are used up; one that was set back refills nothing.
    const refilled = Math.min(burst, this.#left + 1 + Math.max(0, now - this.#at) * perSecond / 1000);
    this.#left = refilled - 1;
    this.#at = now;
    return this.#left >= 0;
  }
}
