/** Where a socket can stand: the ts at which everything it shows is known. */
import type { SharedQuery, Version } from "../queries/shared_query.ts";

/** What is known of commits and versions. */
export interface Knowledge {
  /** Newest commit known. */
  readonly ts: number;
  /** Last ts at which a version is known to hold. */
  upper(version: Version): number;
}

/** The newest ts at which every query has a version; `null` when there is none. Without queries the newest commit. */
export function newestCommonTs(
  queries: readonly { readonly shared: SharedQuery | null }[],
  knowledge: Knowledge,
): number | null {
  let common = knowledge.ts;
  for (const { shared } of queries) {
    const newest = shared?.newest;
    if (newest === undefined) return null;
    // A snapshot may be newer than the newest commit main was told of.
    if (newest.from > common) common = newest.from;
  }
  for (let lowered = true; lowered;) {
    lowered = false;
    for (const { shared } of queries) {
      const version = shared?.versionUpTo(common);
      if (version === undefined) return null;
      const last = knowledge.upper(version);
      if (last < common) {
        common = last;
        lowered = true;
      }
    }
  }
  return common;
}
