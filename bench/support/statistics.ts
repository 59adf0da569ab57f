/** Medians and percentiles of measured numbers. */

/** The value below which the share `p` (0 to 1) of the values lies. Throws `RangeError` when there are none. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
  if (value === undefined) throw new RangeError("Cannot take a percentile of no values");
  return value;
}

/** The middle value; the mean of the two middle values when their number is even. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[sorted.length >> 1];
  const lower = sorted[(sorted.length - 1) >> 1];
  if (upper === undefined || lower === undefined) throw new RangeError("Cannot take the median of no values");
  return (lower + upper) / 2;
}
