/** Keys changed by recent commits. They decide up to which ts an answer from an older snapshot is valid. */
import type { CommitEntry, Interval, KeySpace, ReadSet, UnchangedKeys } from "../../engine/types.ts";
import { sharedQueryLimits } from "../limits.ts";
import { readsUnknown } from "./invalidation.ts";

/** Changed keys of one key space, oldest first. */
interface SpaceKeys {
  readonly ts: number[];
  readonly keys: string[];
}

/** Characters of a lazily computed change that count as one key. */
const CHARS_OF_KEY = 256;

export class CommitMemory {
  /** Changes whose keys stayed the same, oldest first. Their keys are computed on demand. */
  #unchanged: { readonly ts: number[]; readonly changes: UnchangedKeys[] } = { ts: [], changes: [] };
  readonly #spaces = new Map<KeySpace, SpaceKeys>();
  readonly #keysMax: number;
  #keyCount = 0;
  /** Newest commit added or forgotten. */
  #newest: number;
  /** All added commits above this ts are recorded. */
  #from: number;

  constructor(ts: number, keysMax: number = sharedQueryLimits.commitKeysMax) {
    this.#from = ts;
    this.#newest = ts;
    this.#keysMax = keysMax;
  }

  /** Recorded keys, or their equivalent. */
  get size(): number {
    return this.#keyCount;
  }

  /** Records a commit. Drops all records when there are too many keys. */
  add(entry: CommitEntry): void {
    this.#newest = entry.ts;
    for (const change of entry.changes) {
      if (change.unchanged !== undefined) {
        this.#addUnchanged(change.unchanged, entry.ts);
        continue;
      }
      for (const [space, before, after] of change.keys) {
        if (before !== null) this.#push(space, { ts: entry.ts, key: before });
        if (after !== null && after !== before) this.#push(space, { ts: entry.ts, key: after });
      }
    }
    if (this.#keyCount > this.#keysMax) this.forget(entry.ts);
  }

  /** Drops all records. `ts` is the newest commit's. */
  forget(ts: number): void {
    this.#spaces.clear();
    this.#unchanged = { ts: [], changes: [] };
    this.#keyCount = 0;
    this.#from = ts;
    this.#newest = ts;
  }

  /**
   * Returns the ts of the first commit after `after` that changed something in the read set, or `null`. If records that old
   * were dropped, returns the next ts.
   */
  firstTouch(readSet: ReadSet, after: number): number | null {
    if (after < this.#from) return after + 1;
    if (readsUnknown(readSet)) return after < this.#newest ? after + 1 : null;
    let first: number | null = null;
    for (const space of Object.keys(readSet)) {
      const changed = this.#spaces.get(space);
      if (changed === undefined) continue;
      const touch = firstTouchIn(changed, {
        after,
        before: first,
        ranges: mergeIntervals(readSet[space] ?? []),
      });
      if (touch !== null) first = touch;
    }
    return this.#firstUnchangedTouch(readSet, { after, before: first }) ?? first;
  }

  #addUnchanged(unchanged: UnchangedKeys, ts: number): void {
    this.#unchanged.ts.push(ts);
    this.#unchanged.changes.push(unchanged);
    this.#keyCount += unchanged.spaces.length + Math.ceil(unchanged.chars / CHARS_OF_KEY);
  }

  /** First change between `after` and `before` that touched the read set without changing keys, or `null`. */
  #firstUnchangedTouch(
    readSet: ReadSet,
    { after, before }: { readonly after: number; readonly before: number | null },
  ): number | null {
    const { ts, changes } = this.#unchanged;
    let spaces: readonly KeySpace[] = [];
    let read: { readonly position: number; readonly ranges: Ranges }[] = [];
    for (let i = firstAbove(ts, after); i < ts.length; i++) {
      const at = ts[i] ?? 0;
      if (before !== null && at >= before) return null;
      const unchanged = changes[i];
      if (unchanged === undefined) return null;
      if (unchanged.spaces !== spaces) {
        spaces = unchanged.spaces;
        read = spaces.flatMap((space, position) => {
          const intervals = readSet[space];
          return intervals === undefined ? [] : [{ position, ranges: mergeIntervals(intervals) }];
        });
      }
      for (const { position, ranges } of read) if (contains(ranges, unchanged.key(position))) return at;
    }
    return null;
  }

  #push(space: KeySpace, change: { readonly ts: number; readonly key: string }): void {
    let keys = this.#spaces.get(space);
    if (keys === undefined) this.#spaces.set(space, keys = { ts: [], keys: [] });
    keys.ts.push(change.ts);
    keys.keys.push(change.key);
    this.#keyCount++;
  }
}

/** First change between `after` and `before` within the ranges, or `null`. */
function firstTouchIn(
  changed: SpaceKeys,
  { after, before, ranges }: {
    readonly after: number;
    readonly before: number | null;
    readonly ranges: Ranges;
  },
): number | null {
  for (let i = firstAbove(changed.ts, after); i < changed.ts.length; i++) {
    const ts = changed.ts[i] ?? 0;
    if (before !== null && ts >= before) return null;
    if (contains(ranges, changed.keys[i] ?? "")) return ts;
  }
  return null;
}

/** Index of the first number above `bound` in an ascending list. */
function firstAbove(rising: readonly number[], bound: number): number {
  let lo = 0;
  let hi = rising.length;
  while (lo < hi) {
    const middle = (lo + hi) >> 1;
    if ((rising[middle] ?? 0) > bound) hi = middle;
    else lo = middle + 1;
  }
  return lo;
}

/** Non-overlapping intervals in ascending order. A single key ends at the key followed by the lowest character. */
interface Ranges {
  readonly lo: readonly string[];
  readonly hi: readonly string[];
}

function mergeIntervals(intervals: readonly Interval[]): Ranges {
  const sorted = intervals.map(([lo, hi]): [string, string] => [lo, hi ?? `${lo}\0`])
    .sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0);
  const lo: string[] = [];
  const hi: string[] = [];
  for (const [from, to] of sorted) {
    const last = hi.length - 1;
    const lastHi = hi[last];
    if (lastHi !== undefined && from <= lastHi) {
      if (to > lastHi) hi[last] = to;
    } else {
      lo.push(from);
      hi.push(to);
    }
  }
  return { lo, hi };
}

function contains(ranges: Ranges, key: string): boolean {
  let lo = 0;
  let hi = ranges.lo.length;
  while (lo < hi) {
    const middle = (lo + hi) >> 1;
    if ((ranges.lo[middle] ?? "") <= key) lo = middle + 1;
    else hi = middle;
  }
  const candidate = ranges.hi[lo - 1];
  return candidate !== undefined && key < candidate;
}
