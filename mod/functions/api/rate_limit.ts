/** Types of `ctx.rateLimit`. */

/** Unit of time of a rate: a word, or milliseconds. */
export type RatePeriod = "second" | "minute" | "hour" | "day" | number;

/**
 * A token bucket. Each call takes one token, `rate` tokens are added in each period, and the bucket holds at most `burst`
 * tokens. A new bucket is full.
 */
export interface RateLimit {
  /** The caller or subject with a bucket of its own, such as a user id. Default: one bucket for all calls. */
  readonly key?: string | undefined;
  /** Calls allowed per period in the long run. */
  readonly rate: number;
  /** The period, such as `"minute"`. */
  readonly per: RatePeriod;
  /** Calls allowed at once after a pause. Default: `rate`, at least 1. */
  readonly burst?: number | undefined;
}

/** `data` of the `UserError` with the code `rate_limited` that `ctx.rateLimit` throws. */
export interface RateLimitedData {
  /** Name of the limit. */
  readonly name: string;
  /** Milliseconds after which a call can succeed. */
  readonly retryAfter: number;
}
