/** The bounds of the parts in `kit`. Units stand last in the names, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of CSV files. */
export const csvLimits = {
  /** Columns of a CSV file; tables whose documents have more fields are exported as JSONL. */
  columnsMax: 2_048,
  /** Bytes of one row of a CSV file: the largest document has fewer, with every quote in it doubled. */
  rowBytesMax: 8 * MiB,
} as const;

/** Requests to buckets. */
export const bucketLimits = {
  /** How often a request is sent that the service does not answer, or is too busy for. */
  attempts: 3,
  /** The first pause after a service that is too busy, and after a connection that broke; each later one is twice as long. */
  busyPauseMs: 500,
  brokenPauseMs: 100,
  /** Longest pause, also where the service asks for a longer one. */
  pauseMsMax: 20_000,
  /** Uploads in parts that nobody ended, ended at one time: the rest goes the next time. */
  unfinishedEndedMax: 500,
  /** Pages of a listing of such uploads, of which a service makes 1,000 each, that are looked through at one time. */
  unfinishedPagesMax: 100,
} as const;
