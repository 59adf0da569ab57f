/** Preserves the identity of unchanged parts in a new result. */
import * as clientLimits from "../limits.ts";

/**
 * Returns a value equal to `next` that reuses every part of `old` that is equal. Returns `old` itself if both are equal. Both
 * are JSON values.
 */
export function shareStructure(old: unknown, next: unknown): unknown {
  return share(old, next, clientLimits.shareDepthMax);
}

function share(old: unknown, next: unknown, depth: number): unknown {
  if (Object.is(old, next)) return old;
  if (typeof old !== "object" || typeof next !== "object" || old === null || next === null || depth === 0) {
    return next;
  }
  if (Array.isArray(old)) return Array.isArray(next) ? shareArray(old, next, depth) : next;
  if (Array.isArray(next)) return next;
  return shareObject(old as Record<string, unknown>, next as Record<string, unknown>, depth);
}

function shareArray(old: readonly unknown[], next: readonly unknown[], depth: number): readonly unknown[] {
  const oldById = rowsById(old);
  let same = old.length === next.length;
  const shared = next.map((element, i) => {
    const id = rowId(element);
    const before = id === undefined ? old[i] : oldById.get(id) ?? old[i];
    const kept = share(before, element, depth - 1);
    if (!Object.is(kept, old[i])) same = false;
    return kept;
  });
  return same ? old : shared;
}

function shareObject(
  old: Record<string, unknown>,
  next: Record<string, unknown>,
  depth: number,
): Record<string, unknown> {
  const keys = Object.keys(next);
  let same = Object.keys(old).length === keys.length;
  const entries = keys.map((key): [string, unknown] => {
    const known = Object.hasOwn(old, key);
    const kept = known ? share(old[key], next[key], depth - 1) : next[key];
    if (!known || !Object.is(kept, old[key])) same = false;
    return [key, kept];
  });
  return same ? old : Object.fromEntries(entries);
}

// Match list items by `_id`, because positions shift when rows are inserted.
function rowsById(rows: readonly unknown[]): Map<string, unknown> {
  const byId = new Map<string, unknown>();
  for (const row of rows) {
    const id = rowId(row);
    if (id !== undefined) byId.set(id, row);
  }
  return byId;
}

function rowId(row: unknown): string | undefined {
  if (typeof row !== "object" || row === null) return undefined;
  const id: unknown = (row as Record<string, unknown>)["_id"];
  return typeof id === "string" ? id : undefined;
}
