/**
 * Creates result diffs (DF): the JSON of the edits that turn one result into the next. `apply_diff.ts` applies them.
 * Array elements match by `_id` first, so a row that moved or changed costs only that row.
 */
import { matchElements } from "./match_elements.ts";

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
