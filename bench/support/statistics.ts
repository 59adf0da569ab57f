/** Medians and percentiles. */

/** Returns the value below which the share `p` (0 to 1) of the values is. Throws `RangeError` without values. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
  if (value === undefined) throw new RangeError("Cannot take a percentile of no values");
  return value;
}

/** Returns the middle value, or the mean of the two middle values. Throws `RangeError` without values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[sorted.length >> 1];
  const lower = sorted[(sorted.length - 1) >> 1];
  if (upper === undefined || lower === undefined) throw new RangeError("Cannot take the median of no values");
  return (lower + upper) / 2;
}
