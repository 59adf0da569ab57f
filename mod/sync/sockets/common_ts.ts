/** Finds the ts at which all results of a socket are known. */
import type { SharedQuery, Version } from "../queries/shared_query.ts";

/** Known commits and validity of versions. */
export interface VersionBounds {
  /** Newest commit known. */
  readonly ts: number;
  /** Last ts at which a version is known to be valid. */
  upper(version: Version): number;
}

/** Returns the newest ts at which every query has a version, or `null`. Without queries, the newest commit. */
export function newestCommonTs(
  queries: readonly { readonly shared: SharedQuery | null }[],
  knowledge: VersionBounds,
): number | null {
  let common = knowledge.ts;
  for (const { shared } of queries) {
    const newest = shared?.newest;
    if (newest === undefined) return null;
    // A snapshot may be newer than the newest commit main has received.
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
