/** Rate limits by key: token buckets in bounded memory. */
import { LRUCache } from "lru-cache";
import { entriesMax } from "./bounded_lru.ts";

/** Allows `burst` calls at once, then `perMinute`. */
export interface Rate {
  readonly burst: number;
  readonly perMinute: number;
}

export interface RateLimiterOptions extends Rate {
  /** The least recently used key is evicted. */
  readonly keysMax: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

interface Bucket {
  /** Calls left at `at`. */
  tokens: number;
  at: number;
}

export class RateLimiter {
  readonly #burst: number;
  readonly #perMs: number;
  readonly #now: () => number;
  /** A key without a bucket has all its tokens. */
  readonly #buckets: LRUCache<string, Bucket>;

  constructor({ burst, perMinute, keysMax, now }: RateLimiterOptions) {
    this.#burst = burst;
    this.#perMs = perMinute / 60_000;
    this.#buckets = new LRUCache(entriesMax(keysMax));
    this.#now = now;
  }

  /** Number of keys in memory. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Counts a call. Returns 0 if it is allowed, else the milliseconds until one is. */
  take(key: string): number {
    const waitMs = this.wait(key);
    // A refused call counts as a use: otherwise many other keys would evict it and lift the limit.
    this.#spend(key, waitMs > 0 ? 0 : 1);
    return waitMs;
  }

  /** Returns the milliseconds until a call is allowed; 0 for now. Counts nothing. */
  wait(key: string): number {
    const bucket = this.#buckets.peek(key);
    if (!bucket) return 0;
    const tokens = this.#tokens(bucket);
    // Rounding must not add a millisecond.
    return tokens > 1 - 1e-6 ? 0 : Math.ceil((1 - tokens) / this.#perMs);
  }

  /** Returns the token of a call that turned out not to count. */
  refund(key: string): void {
    const bucket = this.#buckets.peek(key);
    if (bucket) bucket.tokens = Math.min(this.#burst, bucket.tokens + 1);
  }

  #spend(key: string, calls: 0 | 1): void {
    const bucket = this.#buckets.get(key);
    const tokens = (bucket ? this.#tokens(bucket) : this.#burst) - calls;
    this.#buckets.set(key, { tokens, at: this.#now() });
  }

  #tokens({ tokens, at }: Bucket): number {
    // A clock that is set back neither fills nor empties a bucket.
    return Math.min(this.#burst, tokens + Math.max(0, this.#now() - at) * this.#perMs);
  }
}
