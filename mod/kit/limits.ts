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
