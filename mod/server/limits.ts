/** The bounds of starting and stopping. Units stand last in the names, as in `mod/limits.ts`. */

/** Limits of the way a server ends. */
export const stopLimits = {
  /** The same signal again within this time is the first one, sent along two ways. */
  sameSignalMs: 500,
} as const;

/** Limits of taking a data folder. */
export const dataLockLimits = {
  /** For so long a server that starts waits for a data folder: commands that run beside servers hold it for an instant. */
  serveWaitMs: 1_000,
  /** Time between two attempts. */
  retryMs: 25,
} as const;
