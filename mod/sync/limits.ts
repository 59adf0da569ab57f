/** Limits of shared queries. Names end with the unit, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

export const sharedQueryLimits = {
  /** Queries without subscribers that are cached for one-shot calls. */
  cachedQueriesMax: 10_000,
  /** Characters of their cached results, as a share of the memory budget in bytes, and at most. */
  cachedCharsShare: 1 / 16,
  cachedCharsMax: 64 * MiB,
  /** One-shot queries waiting for a reader. Further ones are rejected. */
  queuedQueriesMax: 20_000,
  /** Changed keys recorded while queries run, to check late answers. Beyond this limit such queries run again. */
  commitKeysMax: 262_144,
  /** Results up to this length are diffed. Longer ones are sent whole because diffing them would block the event loop. */
  diffedCharsMax: 1 * MiB,
  /** A diff is sent only if its length is at most this fraction of the value's. */
  diffShareMax: 0.7,
  /** A socket stuck for this long, with no run in flight that can unblock it, gets a refresh batch of its own. */
  stuckSocketMs: 250,
} as const;
