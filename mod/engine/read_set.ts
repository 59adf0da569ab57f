/** Read sets: the key intervals that a run read, and the reference check of whether a commit touches them. */
import { functionLimits } from "../limits.ts";
import { keyAfter } from "./indexes/keys.ts";
import type { CommitEntry, Interval, KeySpace, ReadSet } from "./types.ts";

/** Keys from `lo` (inclusive) to `hi` (exclusive). */
interface Span {
  readonly lo: string;
  readonly hi: string;
}

/** The part of a key space that a scan has read. */
export interface ReadRange {
  readonly space: KeySpace;
  lo: string;
  hi: string;
  /** Whether the recorder still tracks this object. It merges ranges when there are many. */
  listed: boolean;
}

const { readSetIntervalsMax } = functionLimits;

export class ReadSetRecorder {
  #points: { readonly space: KeySpace; readonly key: string }[] = [];
  #ranges: ReadRange[] = [];
  #earlier: ReadonlyMap<KeySpace, readonly Span[]> = new Map();

  point(space: KeySpace, key: string): void {
    this.#points.push({ space, key });
    if (this.#points.length > readSetIntervalsMax) this.#condense();
  }

  /** Starts the range of a scan, empty at first. */
  beginRange(space: KeySpace): ReadRange {
    return { space, lo: "", hi: "", listed: false };
  }

  /** Extends the range of a scan. Ranges only grow. */
  extendRange(range: ReadRange, lo: string, hi: string): void {
    range.lo = lo;
    range.hi = hi;
    if (range.listed) return;
    range.listed = true;
    this.#ranges.push(range);
    if (this.#ranges.length > readSetIntervalsMax) this.#condense();
  }

  readSet(): ReadSet {
    const readSet: ReadSet = {};
    for (const [space, spans] of this.#spans()) {
      readSet[space] = spans.map(({ lo, hi }): Interval => hi === keyAfter(lo) ? [lo] : [lo, hi]);
    }
    return readSet;
  }

  #condense(): void {
    this.#earlier = this.#spans();
    this.#points = [];
    for (const range of this.#ranges) range.listed = false;
    this.#ranges = [];
  }

  #spans(): Map<KeySpace, Span[]> {
    const spans = new Map<KeySpace, Span[]>();
    const add = (space: KeySpace, span: Span) => {
      const list = spans.get(space);
      if (list === undefined) spans.set(space, [span]);
      else list.push(span);
    };
    for (const [space, earlier] of this.#earlier) for (const span of earlier) add(space, span);
    for (const { space, key } of this.#points) add(space, { lo: key, hi: keyAfter(key) });
    for (const { space, lo, hi } of this.#ranges) if (lo < hi) add(space, { lo, hi });
    let total = 0;
    for (const [space, list] of spans) {
      const joined = joinTouching(list);
      spans.set(space, joined);
      total += joined.length;
    }
    if (total > readSetIntervalsMax) {
      for (const [space, list] of spans) {
        spans.set(space, joinNeighbours(list, Math.floor(list.length * readSetIntervalsMax / total)));
      }
    }
    return spans;
  }
}

/** Returns the spans sorted, with overlapping and adjacent ones merged. */
function joinTouching(spans: readonly Span[]): Span[] {
  if (spans.length <= 1) return [...spans];
  const ordered = [...spans].sort((a, b) => a.lo < b.lo ? -1 : a.lo > b.lo ? 1 : 0);
  const joined: Span[] = [];
  let open = ordered[0];
  for (const span of ordered) {
    if (open === undefined) break;
    if (span.lo <= open.hi) {
      if (span.hi > open.hi) open = { lo: open.lo, hi: span.hi };
    } else {
      joined.push(open);
      open = span;
    }
  }
  if (open !== undefined) joined.push(open);
  return joined;
}

/** Merges sorted spans into at most `count` spans that cover them. */
function joinNeighbours(spans: readonly Span[], count: number): Span[] {
  const size = Math.ceil(spans.length / Math.max(1, count));
  const joined: Span[] = [];
  for (let from = 0; from < spans.length; from += size) {
    const first = spans[from];
    const last = spans[Math.min(from + size, spans.length) - 1];
    if (first !== undefined && last !== undefined) joined.push({ lo: first.lo, hi: last.hi });
  }
  return joined;
}

/** Whether a commit may have changed a result. Linear in both: the server uses an index for many. */
export function readSetTouches(readSet: ReadSet, entry: CommitEntry): boolean {
  return entry.changes.some(({ keys }) =>
    keys.some(([space, before, after]) => {
      const intervals = readSet[space];
      return intervals !== undefined && intervals.some((interval) =>
        (before !== null && contains(interval, before)) || (after !== null && contains(interval, after))
      );
    })
  );
}

function contains(interval: Interval, key: string): boolean {
  return interval.length === 1 ? interval[0] === key : interval[0] <= key && key < interval[1];
}
