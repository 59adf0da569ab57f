/**
 * Chooses which queries run next. All that a wave runs has a ts in common, but a query still under way from an older
 * wave may not: when commits never stop, two slow queries of one socket could miss each other for ever. So a query
 * waits for a run beside which its own would be of no use, and a socket that is stuck gets a wave of its own.
 */
import { isolateLimits } from "../../functions/limits.ts";
import type { Run, SharedQuery, View, WaveRecord } from "./shared_query.ts";

export interface WavePlan {
  /** Queries that want a run and have none under way. */
  readonly dirty: ReadonlySet<SharedQuery>;
  /** Waves under way. */
  readonly waves: ReadonlySet<WaveRecord>;
  /** Views that have been unable to move for long (`sharedQueryLimits.stuckSocketMs`). */
  readonly stuck: Iterable<View>;
}

/**
 * The queries to run now, all in one wave; those of `together` are of no use in different ones. The others wait for a run
 * under way and are asked about again after it.
 */
export function planWave(
  { dirty, waves, stuck }: WavePlan,
): { readonly queries: SharedQuery[]; readonly together: ReadonlySet<SharedQuery> } {
  const { together, held } = helpStuck(stuck, dirty);
  if (waves.size === 0) return { queries: [...dirty], together };
  const queries = [...dirty].filter((query) =>
    together.has(query) || (!held.has(query) && !wouldMiss(query, waves))
  );
  return { queries, together };
}

/** Which queries have to go together, and which have to wait so that they can: the view stuck longest comes first. */
function helpStuck(
  stuck: Iterable<View>,
  dirty: ReadonlySet<SharedQuery>,
): { readonly together: ReadonlySet<SharedQuery>; readonly held: ReadonlySet<SharedQuery> } {
  const together = new Set<SharedQuery>();
  const held = new Set<SharedQuery>();
  for (const view of stuck) {
    const waiting: SharedQuery[] = [];
    const runs: Run[] = [];
    for (const { shared } of view.subscribers) {
      if (shared === null) continue;
      if (shared.run !== null) runs.push(shared.run);
      else if (dirty.has(shared)) waiting.push(shared);
    }
    if (runs.some((run) => mayHelp(run, view))) continue;
    const taken = runs.length > 0 || waiting.some((query) => held.has(query));
    for (const query of waiting) {
      if (!taken) together.add(query);
      else if (!together.has(query)) held.add(query);
    }
  }
  return { together, held };
}

/**
 * Whether a run started now might have no ts in common with one under way although a socket shows both: the other's
 * snapshot is one at which this query has no result. The slower one waits for the faster, so that a slow query holds
 * up nobody else. A first result never waits.
 */
function wouldMiss(query: SharedQuery, waves: ReadonlySet<WaveRecord>): boolean {
  if (query.versions.length === 0 || [...waves].every((wave) => meets(query, wave))) return false;
  const patienceMs = Math.max(2 * query.durationMs, isolateLimits.slowQueryMs);
  for (const { view } of query.subscribers) {
    for (const { shared: other } of view.subscribers) {
      if (other === null || other.run === null) continue;
      // How long a first run takes nobody knows.
      if (other.versions.length === 0 || other.durationMs > patienceMs) continue;
      if (!meets(query, other.run.wave)) return true;
    }
  }
  return false;
}

function meets(query: SharedQuery, { snapshot }: WaveRecord): boolean {
  return snapshot !== null && query.holdsAt(snapshot);
}

/** Whether a run under way can let the view move when it ends. */
function mayHelp({ touched, wave }: Run, view: View): boolean {
  if (!touched || wave.snapshot === null) return true;
  for (const { shared } of view.subscribers) {
    if (shared === null || shared.run?.wave === wave || shared.holdsAt(wave.snapshot)) continue;
    return false;
  }
  return true;
}
