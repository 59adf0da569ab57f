/** Removes objects from a target that no restorable point within the retention time needs. */
import type { ObjectStore } from "../../kit/locations/object_store.ts";
import { replicationLimits } from "../limits.ts";
import type { Generation } from "./history.ts";
import { generationFile } from "./names.ts";
import type { TargetObject } from "./replica_target.ts";

export interface RetentionOptions {
  readonly generations: readonly Generation[];
  /** The generation that is being written; it is never removed as a whole. */
  readonly current: string | null;
  /** Points before this time need not be restorable, ms since the epoch. */
  readonly before: number;
  /** Objects at the target, by name; updated with each change. */
  readonly objects: Map<string, TargetObject>;
}

/** Removes a snapshot before the segments that only it needs, so that an interruption leaves no useless snapshot. */
export async function removeExpired(target: ObjectStore, options: RetentionOptions): Promise<void> {
  for (const name of namesToRemove(options)) {
    await target.delete(name);
    options.objects.delete(name);
  }
}

/**
 * Returns the names in the order of their removal. A call removes at most one outdated generation, and the
 * oldest snapshot of each other one with the objects that only it needs. A wrong clock therefore costs one step an hour, and
 * not all objects at once.
 */
export function namesToRemove({ generations, current, before }: RetentionOptions): string[] {
  const outdated = generations.find((generation) =>
    generation.name !== current && newestOf([generation]) < before
  );
  return generations.flatMap(({ name, snapshots, segments }) => {
    if (name === outdated?.name) {
      return [...snapshots, ...segments].map(({ file }) => file.name).concat(generationFile(name));
    }
    // The next call removes the next one.
    if (name !== current && newestOf([{ snapshots, segments }]) < before) return [];
    // The restore of the oldest point starts from a snapshot that is old enough; no point needs those before it.
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
 * Clock that decides which objects have expired. It starts at the newest time in the target's names and advances with the
 * monotonic clock, an eighth faster while the wall clock is ahead of it: a wall clock that jumps, or that is wrong
 * at the start, expires nothing at once. It is never ahead of the wall clock.
 */
export class RetentionClock {
  readonly #now: () => number;
  readonly #steady: () => number;
  #at: number;
  #readAt: number;
  #isAhead: boolean;
  /** Lead of the wall clock over the target at the start, if large: the clock is wrong, or the server was off. */
  readonly aheadAtStart: number | null;

  constructor({ now, steady, known }: {
    readonly now: () => number;
    readonly steady: () => number;
    /** The newest time in the target's names; `-Infinity` if it has none. */
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
