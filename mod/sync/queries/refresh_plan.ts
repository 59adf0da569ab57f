/**
 * Chooses the queries to run next. Queries of one batch have a ts in common, but a query still running in an older batch may
 * not share it. Under constant commits two slow queries of one socket could then miss each other forever. So a query waits
 * for a run that would make its own result useless, and a stuck socket gets a batch of its own.
 */
import { isolateLimits } from "../../functions/limits.ts";
import type { RefreshBatch, Run, SharedQuery, View } from "./shared_query.ts";

export interface RefreshState {
  /** Queries that need a run and have none in flight. */
  readonly dirty: ReadonlySet<SharedQuery>;
  readonly batches: ReadonlySet<RefreshBatch>;
  /** Views that have been stuck for `sharedQueryLimits.stuckSocketMs`. */
  readonly stuck: Iterable<View>;
}

/** Returns the queries to run now in one batch, with all of `together` or none. The others wait for a run in flight. */
export function planRefresh(
  { dirty, batches, stuck }: RefreshState,
): { readonly queries: SharedQuery[]; readonly together: ReadonlySet<SharedQuery> } {
  const { together, deferred } = coordinateStuck(stuck, dirty);
  if (batches.size === 0) return { queries: [...dirty], together };
  const queries = [...dirty].filter((query) =>
    together.has(query) || (!deferred.has(query) && !shouldDefer(query, batches))
  );
  return { queries, together };
}

/** Finds queries that must run together and queries that must wait for that. Views stuck longest take precedence. */
function coordinateStuck(
  stuck: Iterable<View>,
  dirty: ReadonlySet<SharedQuery>,
): { readonly together: ReadonlySet<SharedQuery>; readonly deferred: ReadonlySet<SharedQuery> } {
  const together = new Set<SharedQuery>();
  const deferred = new Set<SharedQuery>();
  for (const view of stuck) {
    const waiting: SharedQuery[] = [];
    const runs: Run[] = [];
    for (const { shared } of view.subscribers) {
      if (shared === null) continue;
      if (shared.run !== null) runs.push(shared.run);
      else if (dirty.has(shared)) waiting.push(shared);
    }
    if (runs.some((run) => mayUnblock(run, view))) continue;
    const taken = runs.length > 0 || waiting.some((query) => deferred.has(query));
    for (const query of waiting) {
      if (!taken) together.add(query);
      else if (!together.has(query)) deferred.add(query);
    }
  }
  return { together, deferred };
}

/**
 * Whether a run started now might have no ts in common with a run in flight that the same socket displays, because this
 * query has no result at the other's snapshot. The slower query waits for the faster one, so a slow query delays no other.
 * A first result never waits.
 */
function shouldDefer(query: SharedQuery, batches: ReadonlySet<RefreshBatch>): boolean {
  if (query.versions.length === 0 || [...batches].every((batch) => hasCommonTs(query, batch))) return false;
  const slowerThanMs = Math.max(2 * query.durationMs, isolateLimits.slowQueryMs);
  for (const { view } of query.subscribers) {
    for (const { shared: other } of view.subscribers) {
      if (other === null || other.run === null) continue;
      // The duration of a first run is unknown.
      if (other.versions.length === 0 || other.durationMs > slowerThanMs) continue;
      if (!hasCommonTs(query, other.run.batch)) return true;
    }
  }
  return false;
}

function hasCommonTs(query: SharedQuery, { snapshot }: RefreshBatch): boolean {
  return snapshot !== null && query.holdsAt(snapshot);
}

function mayUnblock({ touched, batch }: Run, view: View): boolean {
  if (!touched || batch.snapshot === null) return true;
  for (const { shared } of view.subscribers) {
    if (shared === null || shared.run?.batch === batch || shared.holdsAt(batch.snapshot)) continue;
    return false;
  }
  return true;
}
