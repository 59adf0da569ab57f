/** Where a socket can stand: the ts at which everything it shows is known. */
import type { SharedQuery, Version } from "./shared_query.ts";

export interface CommonTsOptions {
  /** Newest commit known. */
  readonly ts: number;
  /** Last ts at which a version is known to hold. */
  readonly upper: (version: Version) => number;
}

/** The newest ts at which every query has a version; `null` when there is none. Without queries the newest commit. */
export function newestCommonTs(
  queries: readonly (SharedQuery | null)[],
  { ts, upper }: CommonTsOptions,
): number | null {
  let common = ts;
  for (const query of queries) {
    const newest = query?.newest;
    if (newest === undefined) return null;
    // A snapshot may be newer than the newest commit main was told of.
    if (newest.from > common) common = newest.from;
  }
  for (let lowered = true; lowered;) {
    lowered = false;
    for (const query of queries) {
      const version = query?.versionUpTo(common);
      if (version === undefined) return null;
      const last = upper(version);
      if (last < common) {
        common = last;
        lowered = true;
      }
    }
  }
  return common;
}
