/**
 * Creates result diffs (DF): the JSON of the edits that turn one result into the next. `apply_diff.ts` applies them.
 * Array elements match by `_id` first, so a row that moved or changed costs only that row.
 */
import { canonicalJson } from "./canonical_json.ts";
import { deepEqual } from "./deep_equal.ts";

/** An element of the new array with its old element; `null` if it is inserted. */
interface Match {
  readonly old: number | null;
  readonly new: number;
}

/**
 * Returns one match for each element of the new array; the old positions increase. Documents match by `_id`, other
 * elements by content, with as many matches in order as possible. Between two matches, unmatched elements pair by
 * position if both are arrays or objects without `_id`.
 */
function matchElements(before: readonly unknown[], after: readonly unknown[]): Match[] {
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

/** Down to this depth an edit is compared with a replacement by length; deeper edits are always used. */
const WEIGHED_DEPTH = 4;
/** Shorter edits are always used. */
const SHORT_EDIT_CHARS = 64;

/** The change of a value: none (`null`), an edit, or a new value as JSON. */
type Change = null | { readonly edit: string } | { readonly value: string };

/**
 * Returns the JSON of the diff between two values, or `null` if they are equal. The caller decides by its length
 * whether to send it.
 */
export function resultDiff(before: unknown, after: unknown): string | null {
  const change = changeOf(before, { after, depth: 0 });
  return change === null ? null : diffText(change);
}

function diffText(change: NonNullable<Change>): string {
  return "edit" in change ? change.edit : `{"$r":${change.value}}`;
}

interface Target {
  readonly after: unknown;
  readonly depth: number;
}

function changeOf(before: unknown, { after, depth }: Target): Change {
  if (before === after) return null;
  const edit = Array.isArray(before)
    ? Array.isArray(after) ? arrayEdit(before, { after, depth: depth + 1 }) : undefined
    : isObject(before) && isObject(after)
    ? objectEdit(before, { after, depth: depth + 1 })
    : undefined;
  if (edit === null) return null;
  if (edit === undefined) return { value: JSON.stringify(after) };
  if (edit.length <= SHORT_EDIT_CHARS || depth >= WEIGHED_DEPTH) return { edit };
  const value = JSON.stringify(after);
  return edit.length < value.length ? { edit } : { value };
}

/** Returns `null` if nothing differs. */
function objectEdit(
  before: Record<string, unknown>,
  { after, depth }: { readonly after: Record<string, unknown>; readonly depth: number },
): string | null {
  const set: string[] = [];
  const patched: string[] = [];
  for (const key of Object.keys(after)) {
    if (!Object.hasOwn(before, key)) {
      set.push(`${JSON.stringify(key)}:${JSON.stringify(after[key])}`);
      continue;
    }
    const change = changeOf(before[key], { after: after[key], depth });
    if (change === null) continue;
    if ("value" in change) set.push(`${JSON.stringify(key)}:${change.value}`);
    else patched.push(`${JSON.stringify(key)}:${change.edit}`);
  }
  const deleted = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  const parts: string[] = [];
  if (set.length > 0) parts.push(`"s":{${set.join(",")}}`);
  if (deleted.length > 0) parts.push(`"d":${JSON.stringify(deleted)}`);
  if (patched.length > 0) parts.push(`"p":{${patched.join(",")}}`);
  return parts.length === 0 ? null : `{"$o":{${parts.join(",")}}}`;
}

/** Returns `null` if nothing differs. */
function arrayEdit(
  before: readonly unknown[],
  { after, depth }: { readonly after: readonly unknown[]; readonly depth: number },
): string | null {
  const ops = new ArrayOps();
  let at = 0;
  for (const match of matchElements(before, after)) {
    // Removes unmatched elements of the old array between two matches.
    if (match.old === null) {
      ops.insert(JSON.stringify(after[match.new]));
      continue;
    }
    ops.delete(match.old - at);
    at = match.old + 1;
    const change = changeOf(before[match.old], { after: after[match.new], depth });
    if (change === null) ops.keep();
    else ops.patch(diffText(change));
  }
  ops.delete(before.length - at);
  return ops.text();
}

/** Collects array operations and merges adjacent ones of one kind. */
class ArrayOps {
  readonly #ops: string[] = [];
  #kept = 0;
  #deleted = 0;
  #inserted: string[] = [];

  keep(): void {
    this.#flushEdits();
    this.#kept++;
  }

  delete(count: number): void {
    if (count === 0) return;
    this.#flushKept();
    this.#deleted += count;
  }

  insert(element: string): void {
    this.#flushKept();
    this.#inserted.push(element);
  }

  patch(diff: string): void {
    this.#flushKept();
    this.#flushEdits();
    this.#ops.push(`{"$p":${diff}}`);
  }

  /** Returns the edit; elements kept at the end need no operation. */
  text(): string | null {
    this.#flushEdits();
    return this.#ops.length === 0 ? null : `{"$a":[${this.#ops.join(",")}]}`;
  }

  #flushKept(): void {
    if (this.#kept > 0) this.#ops.push(String(this.#kept));
    this.#kept = 0;
  }

  #flushEdits(): void {
    if (this.#deleted > 0) this.#ops.push(String(-this.#deleted));
    if (this.#inserted.length > 0) this.#ops.push(`[${this.#inserted.join(",")}]`);
    this.#deleted = 0;
    this.#inserted = [];
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
