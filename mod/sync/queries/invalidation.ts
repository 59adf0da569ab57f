/** Which queries a commit touches: the read sets of all shared queries, one interval index a key space. */
import type { CommitEntry, KeySpace, ReadSet, UnchangedKeys } from "../../engine/types.ts";
import { IntervalIndex } from "./interval_index.ts";

/** The key space of {@linkcode unknownReads}. */
const EVERY_SPACE = "*";

export class Invalidation<Owner> {
  readonly #spaces = new Map<KeySpace, IntervalIndex<Owner>>();
  /** Owners that every commit touches. */
  readonly #unknown = new Set<Owner>();

  add(owner: Owner, readSet: ReadSet): void {
    for (const space of Object.keys(readSet)) {
      if (space === EVERY_SPACE) this.#unknown.add(owner);
      let index = this.#spaces.get(space);
      if (index === undefined) this.#spaces.set(space, index = new IntervalIndex());
      for (const interval of readSet[space] ?? []) index.add(interval, owner);
    }
  }

  remove(owner: Owner, readSet: ReadSet): void {
    for (const space of Object.keys(readSet)) {
      if (space === EVERY_SPACE) this.#unknown.delete(owner);
      const index = this.#spaces.get(space);
      if (index === undefined) continue;
      for (const interval of readSet[space] ?? []) index.remove(interval, owner);
      if (index.empty) this.#spaces.delete(space);
    }
  }

  /** Whether changes of keys in some of these spaces may touch anybody. */
  mayTouch(spaces: ReadonlySet<KeySpace>): boolean {
    if (this.#unknown.size > 0) return true;
    for (const space of spaces) if (this.#spaces.has(space)) return true;
    return false;
  }

  /** Calls `touch` with each owner whose read set a change of the commit falls into; it may come several times. */
  stab(entry: CommitEntry, touch: (owner: Owner) => void): void {
    for (const owner of this.#unknown) touch(owner);
    if (this.#spaces.size === 0) return;
    for (const change of entry.changes) {
      if (change.unchanged !== undefined) {
        this.#stabKept(change.unchanged, touch);
        continue;
      }
      for (const [space, before, after] of change.keys) {
        const index = this.#spaces.get(space);
        if (index === undefined) continue;
        if (before !== null) index.stab(before, touch);
        if (after !== null && after !== before) index.stab(after, touch);
      }
    }
  }

  /** Asks only for keys that somebody has read beside: making them costs more than most of what is done with them. */
  #stabKept(kept: UnchangedKeys, touch: (owner: Owner) => void): void {
    const { spaces } = kept;
    for (let place = 0; place < spaces.length; place++) {
      const index = this.#spaces.get(spaces[place] ?? "");
      if (index !== undefined) index.stab(kept.key(place), touch);
    }
  }
}

/** Whether a run could not tell what it read. */
export function readsUnknown(readSet: ReadSet): boolean {
  return Object.hasOwn(readSet, EVERY_SPACE);
}

/** Whether two read sets are written the same way; equal sets may be written differently. */
export function sameReadSet(a: ReadSet, b: ReadSet): boolean {
  const spaces = Object.keys(a);
  if (spaces.length !== Object.keys(b).length) return false;
  for (const space of spaces) {
    const left = a[space] ?? [];
    const right = b[space];
    if (right === undefined || left.length !== right.length) return false;
    for (let i = 0; i < left.length; i++) {
      if (left[i]?.[0] !== right[i]?.[0] || left[i]?.[1] !== right[i]?.[1]) return false;
    }
  }
  return true;
}
