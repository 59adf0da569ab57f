/** Removes from a target what no point needs any more that restores are to reach. */
import { replicationLimits } from "../limits.ts";
import type { Generation } from "./history.ts";
import { generationFile } from "./names.ts";
import type { ReplicaTarget, TargetObject } from "./target/replica_target.ts";

export interface RetentionOptions {
  readonly generations: readonly Generation[];
  /** The generation that is being written; it is never removed as a whole. */
  readonly current: string | null;
  /** Points before this time need not be reached, ms since the epoch. */
  readonly before: number;
  /** Objects at the target, by name; updated with each change. */
  readonly objects: Map<string, TargetObject>;
}

/** A snapshot goes before the segments that only it needs, so that an end in the middle leaves nothing that leads nowhere. */
export async function removeExpired(target: ReplicaTarget, options: RetentionOptions): Promise<void> {
  for (const name of namesToRemove(options)) {
    await target.remove(name);
    options.objects.delete(name);
  }
}

/**
 * In the order in which they are to go. However late it seems to be: of a generation that is written the oldest snapshot
 * goes at a time, with what only it needs, and of the others the oldest one goes. So a clock that is wrong costs
 * one step each hour, and not everything at once.
 */
export function namesToRemove({ generations, current, before }: RetentionOptions): string[] {
  const outdated = generations.find((generation) =>
    generation.name !== current && newestOf([generation]) < before
  );
  return generations.flatMap(({ name, snapshots, segments }) => {
    if (name === outdated?.name) {
      return [...snapshots, ...segments].map(({ file }) => file.name).concat(generationFile(name));
    }
    // The next one goes in a later turn.
    if (name !== current && newestOf([{ snapshots, segments }]) < before) return [];
    // The oldest point to be reached begins with a snapshot that is old enough; all before it are not needed.
    const last = snapshots.findLastIndex(({ at }) => at <= before);
    const base = snapshots[Math.min(last, replicationLimits.snapshotsExpired)];
    if (base === undefined) return [];
    return [
      ...snapshots.filter(({ seq, at }) => seq < base.seq || (seq === base.seq && at < base.at)),
      ...segments.filter(({ toSeq }) => toSeq <= base.seq),
    ].map(({ file }) => file.name);
  });
}

/** The newest time in the names, ms since the epoch; `-Infinity` when there are none. */
export function newestOf(generations: readonly Pick<Generation, "snapshots" | "segments">[]): number {
  let newest = -Infinity;
  for (const { snapshots, segments } of generations) {
    for (const { at } of snapshots) newest = Math.max(newest, at);
    for (const { maxAt } of segments) newest = Math.max(newest, maxAt);
  }
  return newest;
}

/**
 * Clock that decides which objects are too old. It starts at the newest time that the target has and advances with the
 * monotonic clock, an eighth faster while the wall clock is ahead of it: a wall clock that jumps, or that is wrong
 * at the start, makes nothing old at once. It is never later than the wall clock says.
 */
export class RetentionClock {
  readonly #now: () => number;
  readonly #steady: () => number;
  #at: number;
  #readAt: number;
  #isAhead: boolean;
  /** How far the wall clock was ahead of the target at the start, when that was far: it is wrong, or the server was off. */
  readonly aheadAtStart: number | null;

  constructor({ now, steady, known }: {
    readonly now: () => number;
    readonly steady: () => number;
    /** The newest time that the target knows of; `-Infinity` when it knows none. */
    readonly known: number;
  }) {
    this.#now = now;
    this.#steady = steady;
    this.#readAt = steady();
    const at = now();
    this.#at = known === -Infinity ? at : Math.min(at, known);
    const ahead = at - this.#at;
    this.#isAhead = ahead > replicationLimits.clockAheadMs;
    this.aheadAtStart = this.#isAhead ? ahead : null;
  }

  /** `jumped`: how far the wall clock has jumped ahead since the start, reported once if that is far; otherwise `null`. */
  read(): { readonly at: number; readonly jumped: number | null } {
    const steady = this.#steady();
    const passed = steady - this.#readAt;
    this.#readAt = steady;
    const now = this.#now();
    const most = passed * (1 + replicationLimits.clockCatchUp);
    this.#at += Math.max(0, Math.min(now - this.#at, most));
    const ahead = now - this.#at;
    const far = ahead > replicationLimits.clockAheadMs;
    const jumped = far && !this.#isAhead ? ahead : null;
    this.#isAhead = far;
    return { at: Math.min(now, this.#at), jumped };
  }
}
