/**
 * Chooses which queries run next. All that a wave runs has a ts in common, but a query still under way from an older
 * wave may not: when commits never stop, two slow queries of one socket could miss each other for ever. So a query
 * waits for a run beside which its own would be of no use, and a socket that is stuck gets a wave of its own.
 */
import { isolateLimits } from "../limits.ts";
import type { Run, SharedQuery, View } from "./shared_query.ts";

export interface WavePlan {
  /** Queries that want a run and have none under way. */
  readonly dirty: ReadonlySet<SharedQuery>;
  readonly running: ReadonlySet<SharedQuery>;
  /** Views that have been unable to move for long (`sharedQueryLimits.stuckSocketMs`). */
  readonly stuck: Iterable<View>;
}

/** The queries to run now, all in one wave. The others wait for a run under way and are asked about again after it. */
export function planWave({ dirty, running, stuck }: WavePlan): SharedQuery[] {
  const waiting = new Set<SharedQuery>();
  for (const other of running) {
    const { run } = other;
    if (run === null || !run.touched || run.wave.snapshot === null) continue;
    for (const query of dirty) {
      if (!waiting.has(query) && wouldMiss(query, { other, snapshot: run.wave.snapshot })) waiting.add(query);
    }
  }
  if (running.size > 0) {
    for (const view of stuck) {
      if (hopeful(view)) continue;
      for (const { shared } of view.subscribers) {
        if (shared !== null && dirty.has(shared)) waiting.add(shared);
      }
    }
  }
  return waiting.size === 0 ? [...dirty] : [...dirty].filter((query) => !waiting.has(query));
}

/**
 * Whether a run of `query` started now and the run of `other` would have no ts in common although a socket shows both.
 * The slower one waits for the faster, so that a slow query holds up nobody else. A first result never waits.
 */
function wouldMiss(
  query: SharedQuery,
  { other, snapshot }: { readonly other: SharedQuery; readonly snapshot: number },
): boolean {
  if (query.versions.length === 0 || query.holdsAt(snapshot)) return false;
  if (other.durationMs > Math.max(2 * query.durationMs, isolateLimits.slowQueryMs)) return false;
  return shareView(query, other);
}

function shareView(a: SharedQuery, b: SharedQuery): boolean {
  const [fewer, other] = a.subscribers.size <= b.subscribers.size ? [a, b] : [b, a];
  for (const { view } of fewer.subscribers) {
    for (const { shared } of view.subscribers) if (shared === other) return true;
  }
  return false;
}

/** Whether a run under way can let the view move when it ends. */
function hopeful(view: View): boolean {
  const runs: Run[] = [];
  for (const { shared } of view.subscribers) {
    if (shared !== null && shared.run !== null) runs.push(shared.run);
  }
  if (runs.length === 0) return true;
  return runs.some((run) => !run.touched || allMeet(view, run));
}

function allMeet(view: View, { wave }: Run): boolean {
  if (wave.snapshot === null) return true;
  for (const { shared } of view.subscribers) {
    if (shared === null || shared.run?.wave === wave || shared.holdsAt(wave.snapshot)) continue;
    return false;
  }
  return true;
}
