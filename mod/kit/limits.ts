/** Limits of the code in `kit`. Names end with their unit, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

export const csvLimits = {
  /** Tables whose documents have more fields are exported as JSONL. */
  columnsMax: 2_048,
  /** The largest document has fewer, with every quote in it doubled. */
  rowBytesMax: 8 * MiB,
} as const;

export const bucketLimits = {
  /** Attempts for a request that gets no answer or `503`. */
  attempts: 3,
  /** First pause after a busy answer and after a broken connection; each next pause doubles. */
  busyPauseMs: 500,
  brokenPauseMs: 100,
  /** Longest pause, also if the service asks for more. */
  pauseMsMax: 20_000,
  /** Unfinished uploads aborted in one call. */
  unfinishedEndedMax: 500,
  /** Pages of unfinished uploads listed in one call, of 1,000 each. */
  unfinishedPagesMax: 100,
} as const;
