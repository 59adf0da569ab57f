/** Finds the queries that a commit invalidates. Keeps one interval index of read sets per key space. */
import type { CommitEntry, KeySpace, ReadSet, UnchangedKeys } from "../../engine/types.ts";
import { IntervalIndex } from "./interval_index.ts";

/** The key space of {@linkcode unknownReads}. */
const EVERY_SPACE = "*";

export class Invalidation<Owner> {
  readonly #spaces = new Map<KeySpace, IntervalIndex<Owner>>();
  /** Owners that every commit invalidates. */
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

  /** Whether changes in any of these key spaces could invalidate an owner. */
  mayTouch(spaces: ReadonlySet<KeySpace>): boolean {
    if (this.#unknown.size > 0) return true;
    for (const space of spaces) if (this.#spaces.has(space)) return true;
    return false;
  }

  /** Calls `touch` with each owner whose read set contains a changed key. An owner may be repeated. */
  stab(entry: CommitEntry, touch: (owner: Owner) => void): void {
    for (const owner of this.#unknown) touch(owner);
    if (this.#spaces.size === 0) return;
    for (const change of entry.changes) {
      if (change.unchanged !== undefined) {
        this.#stabUnchanged(change.unchanged, touch);
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

  /** Computes keys only for key spaces that have readers: computing them is the main cost. */
  #stabUnchanged(unchanged: UnchangedKeys, touch: (owner: Owner) => void): void {
    const { spaces } = unchanged;
    for (let place = 0; place < spaces.length; place++) {
      const index = this.#spaces.get(spaces[place] ?? "");
      if (index !== undefined) index.stab(unchanged.key(place), touch);
    }
  }
}

/** Whether the reads of a run are unknown. */
export function readsUnknown(readSet: ReadSet): boolean {
  return Object.hasOwn(readSet, EVERY_SPACE);
}

/** Whether two read sets are represented identically. Equal sets may have different representations. */
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
