/** Finds which element of an old array became which element of a new one, keeping the order of both. */
import { canonicalJson } from "./canonical_json.ts";
import { deepEqual } from "./deep_equal.ts";

/** An element of the new array with its old element; `null` if it is inserted. */
export interface Match {
  readonly old: number | null;
  readonly new: number;
}

/**
 * Returns one match for each element of the new array; the old positions increase. Documents match by `_id`, other
 * elements by content, with as many matches in order as possible. Between two matches, unmatched elements pair by
 * position if both are arrays or objects without `_id`.
 */
export function matchElements(before: readonly unknown[], after: readonly unknown[]): Match[] {
  let head = 0;
  const shorter = Math.min(before.length, after.length);
  while (head < shorter && deepEqual(before[head], after[head])) head++;
  let tail = 0;
  while (
    tail < shorter - head && deepEqual(before[before.length - 1 - tail], after[after.length - 1 - tail])
  ) tail++;

  const matches: Match[] = [];
  for (let i = 0; i < head; i++) matches.push({ old: i, new: i });
  const partners = matchMiddle(before, { after, head, tail });
  const ends = gapEnds(partners, before.length - tail);
  let nextOld = head;
  for (let i = head; i < after.length - tail; i++) {
    const partner = partners[i - head] ?? null;
    if (partner !== null) {
      matches.push({ old: partner, new: i });
      nextOld = partner + 1;
      continue;
    }
    const old = nextOld < (ends[i - head] ?? 0) ? nextOld : null;
    if (old !== null && editable(before[old], after[i])) {
      matches.push({ old, new: i });
      nextOld = old + 1;
    } else {
      matches.push({ old: null, new: i });
    }
  }
  for (let i = tail; i > 0; i--) matches.push({ old: before.length - i, new: after.length - i });
  return matches;
}

/** For each new element, the old position of the next match, or the end of the middle. */
function gapEnds(partners: readonly (number | null)[], middleEnd: number): number[] {
  const ends: number[] = new Array(partners.length);
  let end = middleEnd;
  for (let i = partners.length - 1; i >= 0; i--) {
    end = partners[i] ?? end;
    ends[i] = end;
  }
  return ends;
}

interface Middle {
  readonly after: readonly unknown[];
  readonly head: number;
  readonly tail: number;
}

/** For each new element of the middle, its old position, increasing, or `null`. */
function matchMiddle(before: readonly unknown[], { after, head, tail }: Middle): (number | null)[] {
  const oldByKey = new Map<string, number[]>();
  // In reverse, so that `pop` returns equal elements in their order.
  for (let i = before.length - tail - 1; i >= head; i--) {
    const key = elementKey(before[i]);
    const places = oldByKey.get(key);
    if (places === undefined) oldByKey.set(key, [i]);
    else places.push(i);
  }
  const partners: (number | null)[] = [];
  for (let i = head; i < after.length - tail; i++) {
    partners.push(oldByKey.get(elementKey(after[i]))?.pop() ?? null);
  }
  return longestIncreasing(partners);
}

/** Keeps the longest increasing subsequence; the other positions become `null`. */
function longestIncreasing(positions: readonly (number | null)[]): (number | null)[] {
  /** `ends[n]` is the index of the lowest position that ends a subsequence of n + 1. */
  const ends: number[] = [];
  const previous: number[] = new Array(positions.length).fill(-1);
  for (let i = 0; i < positions.length; i++) {
    const position = positions[i] ?? null;
    if (position === null) continue;
    let lo = 0;
    let hi = ends.length;
    while (lo < hi) {
      const middle = (lo + hi) >> 1;
      if ((positions[ends[middle] ?? -1] ?? -1) < position) lo = middle + 1;
      else hi = middle;
    }
    previous[i] = lo === 0 ? -1 : ends[lo - 1] ?? -1;
    ends[lo] = i;
  }
  const kept: (number | null)[] = new Array(positions.length).fill(null);
  for (let i = ends[ends.length - 1] ?? -1; i !== -1; i = previous[i] ?? -1) kept[i] = positions[i] ?? null;
  return kept;
}

function elementKey(element: unknown): string {
  const id = documentId(element);
  return id === undefined ? `c${canonicalJson(element)}` : `d${JSON.stringify(id)}`;
}

/** Returns the `_id` of a document if it is a valid key. */
function documentId(element: unknown): string | number | undefined {
  if (typeof element !== "object" || element === null || Array.isArray(element)) return undefined;
  const id: unknown = Object.hasOwn(element, "_id") ? (element as { _id: unknown })._id : undefined;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}

/** Returns whether an edit can turn one element into the other. */
function editable(before: unknown, after: unknown): boolean {
  if (typeof before !== "object" || typeof after !== "object" || before === null || after === null) {
    return false;
  }
  return Array.isArray(before) === Array.isArray(after) && documentId(before) === undefined &&
    documentId(after) === undefined;
}
