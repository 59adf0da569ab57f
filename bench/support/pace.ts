/** Checks whether operations kept their pace. */

/** Share of the operations that may be missing, because they are in flight at the end. */
const MISSING_SHARE_MAX = 0.02;

/** Returns a message if too few operations were done, otherwise `null`. */
export function missedPace(
  { done, perSecond, ms }: { readonly done: number; readonly perSecond: number; readonly ms: number },
): string | null {
  const due = perSecond * ms / 1_000;
  if (done >= due * (1 - MISSING_SHARE_MAX)) return null;
  return `${done} of ${Math.round(due)} operations were done in ${(ms / 1_000).toFixed(0)} s`;
}
