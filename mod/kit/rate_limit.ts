/** Rate limits by key: token buckets in bounded memory. */

/** `burst` calls at once, then `perMinute`. */
export interface Rate {
  readonly burst: number;
  readonly perMinute: number;
}

export interface RateLimiterOptions extends Rate {
  /** Keys remembered; the one unused for longest gives way. */
  readonly keysMax: number;
  /** Milliseconds; only differences count. */
  readonly now: () => number;
}

interface Bucket {
  /** Calls left at `at`; refills with time. */
  tokens: number;
  at: number;
}

/** One rate limit, for as many keys as memory is given for. */
export class RateLimiter {
  readonly #burst: number;
  readonly #perMs: number;
  readonly #keysMax: number;
  readonly #now: () => number;
  /** In order of last use; a key that is not here has a full bucket. */
  readonly #buckets = new Map<string, Bucket>();

  constructor({ burst, perMinute, keysMax, now }: RateLimiterOptions) {
    this.#burst = burst;
    this.#perMs = perMinute / 60_000;
    this.#keysMax = keysMax;
    this.#now = now;
  }

  /** Keys remembered at the moment. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Counts one call. Returns 0 when it may go ahead, else the milliseconds until one may. */
  take(key: string): number {
    const waitMs = this.wait(key);
    // A refused call counts as a use of its key, or a flood of other keys would wash the refusal away.
    this.#spend(key, waitMs > 0 ? 0 : 1);
    return waitMs;
  }

  /** Milliseconds until a call may go ahead, 0 for at once. Counts nothing. */
  wait(key: string): number {
    const bucket = this.#buckets.get(key);
    if (!bucket) return 0;
    const tokens = this.#tokens(bucket);
    // The rounding of a refill must not cost another millisecond.
    return tokens > 1 - 1e-6 ? 0 : Math.ceil((1 - tokens) / this.#perMs);
  }

  /** Gives a call back, for what turned out not to count. */
  giveBack(key: string): void {
    const bucket = this.#buckets.get(key);
    if (bucket) bucket.tokens = Math.min(this.#burst, bucket.tokens + 1);
  }

  #spend(key: string, calls: 0 | 1): void {
    const bucket = this.#buckets.get(key);
    const tokens = (bucket ? this.#tokens(bucket) : this.#burst) - calls;
    this.#buckets.delete(key);
    this.#buckets.set(key, { tokens, at: this.#now() });
    if (this.#buckets.size > this.#keysMax) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
  }

  #tokens({ tokens, at }: Bucket): number {
    // A clock that was set back neither fills nor empties a bucket.
    return Math.min(this.#burst, tokens + Math.max(0, this.#now() - at) * this.#perMs);
  }
}
