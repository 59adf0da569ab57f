/** Read sets: what a run read, as few exact intervals, and the plain reference of when a commit touches them. */
import { functionLimits } from "../limits.ts";
import { keyAfter } from "./indexes/keys.ts";
import type { CommitEntry, Interval, KeySpace, ReadSet } from "./types.ts";

/** Keys from `lo` (included) to `hi` (excluded). */
interface Span {
  readonly lo: string;
  readonly hi: string;
}

/** The part of a key space that one scan has read so far. */
export interface ReadRange {
  readonly space: KeySpace;
  lo: string;
  hi: string;
  /** Whether the recorder still looks at this object; it lets go of ranges when they become many. */
  listed: boolean;
}

const { readSetIntervalsMax } = functionLimits;

/** Collects what a run reads, in bounded memory. */
export class ReadSetRecorder {
  #points: { readonly space: KeySpace; readonly key: string }[] = [];
  #ranges: ReadRange[] = [];
  /** What was read before the lists were last emptied. */
  #earlier: ReadonlyMap<KeySpace, readonly Span[]> = new Map();

  /** Notes that one key was looked up. */
  point(space: KeySpace, key: string): void {
    this.#points.push({ space, key });
    if (this.#points.length > readSetIntervalsMax) this.#condense();
  }

  /** Begins the range of a scan, empty at first. */
  beginRange(space: KeySpace): ReadRange {
    return { space, lo: "", hi: "", listed: false };
  }

  /** Sets what the scan has read so far. Ranges only ever grow. */
  extendRange(range: ReadRange, lo: string, hi: string): void {
    range.lo = lo;
    range.hi = hi;
    if (range.listed) return;
    range.listed = true;
    this.#ranges.push(range);
    if (this.#ranges.length > readSetIntervalsMax) this.#condense();
  }

  /** The read set so far. */
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

/** The same keys in order, overlapping and adjacent spans joined. */
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

/** At most `count` spans (one at least) that cover those given, which are in order. */
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

/**
 * Whether a commit may have changed the result of the run that read this: the plain reference, linear in both. Servers
 * with many read sets use an index instead.
 */
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
