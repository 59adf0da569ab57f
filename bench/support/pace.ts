/** Whether work that was due at an even pace was done at that pace. */

/** Operations that may be missing, because the last ones are in flight when the time is over. */
const TOLERATED = 0.02;

/** Message about work that fell behind; `null` if it did not. */
export function missedPace(
  { done, perSecond, ms }: { readonly done: number; readonly perSecond: number; readonly ms: number },
): string | null {
  const due = perSecond * ms / 1_000;
  if (done >= due * (1 - TOLERATED)) return null;
  return `the pace: ${done} of ${Math.round(due)} in ${(ms / 1_000).toFixed(0)} s`;
}
