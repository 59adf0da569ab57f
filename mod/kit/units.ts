/** Formats sizes and durations for people. */

const SIZES = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

export function size(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < SIZES.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${SIZES[unit]}`;
}

export function duration(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1_000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${tenths(ms / 3_600_000)} h`;
  return `${tenths(ms / 86_400_000)} d`;
}

/** Formats with one decimal, omitting ".0". */
export function tenths(value: number): string {
  return value.toFixed(1).replace(/\.0$/, "");
}
