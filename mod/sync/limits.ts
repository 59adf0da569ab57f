/** The bounds of shared queries. Units stand last in the names, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of the shared queries in main. */
export const sharedQueryLimits = {
  /** Queries nobody subscribes to that are kept to answer one-shot calls. */
  cachedQueriesMax: 10_000,
  /** Characters of results kept for them. */
  cachedCharsMax: 64 * MiB,
  /** One-shot queries waiting for a reader; one more is refused. */
  queuedQueriesMax: 20_000,
  /** Changed keys remembered while queries run, to see what a late answer missed; past it such answers run again. */
  commitKeysMax: 262_144,
  /** What differs of two results is compared up to this length, past it they are sent whole: it would hold up everything else. */
  diffedCharsMax: 1 * MiB,
  /** A diff is sent only when its length is at most this share of the value's. */
  diffShareMax: 0.7,
  /** A socket that had to wait this long, with no run under way that can help it, gets a wave of its own queries. */
  stuckSocketMs: 250,
} as const;
