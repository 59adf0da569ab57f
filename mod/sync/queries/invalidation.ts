/** Finds the queries that a commit invalidates. Keeps one interval index of read sets per key space. */
import type { CommitEntry, Interval, KeySpace, ReadSet, UnchangedKeys } from "../../engine/types.ts";

interface RangeNode<Owner> {
  readonly lo: string;
  readonly hi: string;
  readonly priority: number;
  readonly owners: Set<Owner>;
  /** Highest `hi` in this node's subtree. */
  maxHi: string;
  left: RangeNode<Owner> | null;
  right: RangeNode<Owner> | null;
}

/** Finds owners of intervals that contain a key, in logarithmic time: a map of keys, a treap of ranges. */
export class IntervalIndex<Owner> {
  readonly #points = new Map<string, Set<Owner>>();
  #ranges: RangeNode<Owner> | null = null;
  /** State of the pseudorandom generator for priorities. */
  #seed = 0x2545f491;

  get empty(): boolean {
    return this.#ranges === null && this.#points.size === 0;
  }

  /** Adds an interval for an owner. Idempotent. */
  add(interval: Interval, owner: Owner): void {
    const [lo, hi] = interval;
    if (hi === undefined) {
      const owners = this.#points.get(lo);
      if (owners === undefined) this.#points.set(lo, new Set([owner]));
      else owners.add(owner);
    } else if (lo < hi) {
      this.#ranges = this.#insert(this.#ranges, { lo, hi, owner });
    }
  }

  /** Removes an interval of an owner. Idempotent. */
  remove(interval: Interval, owner: Owner): void {
    const [lo, hi] = interval;
    if (hi === undefined) {
      const owners = this.#points.get(lo);
      if (owners?.delete(owner) && owners.size === 0) this.#points.delete(lo);
    } else if (lo < hi) {
      this.#ranges = remove(this.#ranges, { lo, hi, owner });
    }
  }

  /** Calls `visit` with the owner of each interval that contains the key, once per interval. */
  stab(key: string, visit: (owner: Owner) => void): void {
    const owners = this.#points.get(key);
    if (owners !== undefined) { for (const owner of owners) visit(owner); }
    stabRanges(this.#ranges, { key, visit });
  }

  #insert(
    node: RangeNode<Owner> | null,
    range: { readonly lo: string; readonly hi: string; readonly owner: Owner },
  ): RangeNode<Owner> {
    if (node === null) {
      this.#seed = Math.imul(this.#seed ^ (this.#seed >>> 15), 0x2c1b3c6d) + 0x9e3779b9 | 0;
      return {
        lo: range.lo,
        hi: range.hi,
        priority: this.#seed,
        owners: new Set([range.owner]),
        maxHi: range.hi,
        left: null,
        right: null,
      };
    }
    const side = compare(range, node);
    if (side === 0) {
      node.owners.add(range.owner);
      return node;
    }
    if (side < 0) {
      node.left = this.#insert(node.left, range);
      if (node.left.priority > node.priority) return rotateRight(node, node.left);
    } else {
      node.right = this.#insert(node.right, range);
      if (node.right.priority > node.priority) return rotateLeft(node, node.right);
    }
    if (range.hi > node.maxHi) node.maxHi = range.hi;
    return node;
  }
}

function stabRanges<Owner>(
  root: RangeNode<Owner> | null,
  { key, visit }: { readonly key: string; readonly visit: (owner: Owner) => void },
): void {
  for (let node = root; node !== null && node.maxHi > key;) {
    if (node.left !== null && node.left.maxHi > key) stabRanges(node.left, { key, visit });
    if (node.lo > key) return;
    if (key < node.hi) { for (const owner of node.owners) visit(owner); }
    node = node.right;
  }
}

function remove<Owner>(
  node: RangeNode<Owner> | null,
  range: { readonly lo: string; readonly hi: string; readonly owner: Owner },
): RangeNode<Owner> | null {
  if (node === null) return null;
  const side = compare(range, node);
  if (side === 0) {
    node.owners.delete(range.owner);
    return node.owners.size > 0 ? node : join(node.left, node.right);
  }
  if (side < 0) node.left = remove(node.left, range);
  else node.right = remove(node.right, range);
  setMaxHi(node);
  return node;
}

/** Joins two treaps. Every range of the first precedes every range of the second. */
function join<Owner>(
  left: RangeNode<Owner> | null,
  right: RangeNode<Owner> | null,
): RangeNode<Owner> | null {
  if (left === null) return right;
  if (right === null) return left;
  if (left.priority > right.priority) {
    left.right = join(left.right, right);
    setMaxHi(left);
    return left;
  }
  right.left = join(left, right.left);
  setMaxHi(right);
  return right;
}

function rotateRight<Owner>(node: RangeNode<Owner>, left: RangeNode<Owner>): RangeNode<Owner> {
  node.left = left.right;
  left.right = node;
  setMaxHi(node);
  setMaxHi(left);
  return left;
}

function rotateLeft<Owner>(node: RangeNode<Owner>, right: RangeNode<Owner>): RangeNode<Owner> {
  node.right = right.left;
  right.left = node;
  setMaxHi(node);
  setMaxHi(right);
  return right;
}

function setMaxHi<Owner>(node: RangeNode<Owner>): void {
  let maxHi = node.hi;
  if (node.left !== null && node.left.maxHi > maxHi) maxHi = node.left.maxHi;
  if (node.right !== null && node.right.maxHi > maxHi) maxHi = node.right.maxHi;
  node.maxHi = maxHi;
}

function compare(
  a: { readonly lo: string; readonly hi: string },
  b: { readonly lo: string; readonly hi: string },
): number {
  if (a.lo !== b.lo) return a.lo < b.lo ? -1 : 1;
  if (a.hi !== b.hi) return a.hi < b.hi ? -1 : 1;
  return 0;
}

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
    for (let position = 0; position < spaces.length; position++) {
      const index = this.#spaces.get(spaces[position] ?? "");
      if (index !== undefined) index.stab(unchanged.key(position), touch);
    }
  }
}

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
