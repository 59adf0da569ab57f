/** Converts the bounds of a scan to a range of keys. Errors say what to do. */
import { EngineError } from "../errors.ts";
import { keyAfter, type KeyRange, rangeOfBounds } from "./keys.ts";
import type { Table } from "../table.ts";
import { BY_ID } from "../table.ts";
import { END_OF_KEYS, type Value } from "../types.ts";
import { checkStorable } from "../documents/values.ts";
import type { ScanIndex } from "./field_index.ts";
import type { Bound, IndexBounds, ScanOptions } from "../read_options.ts";

/** An index or aggregate with ordered keys. */
type BoundIndex = Pick<ScanIndex, "name" | "boundFields">;

/** Returns the key range of a scan. Throws an `EngineError` for bounds that do not match the index. */
export function rangeOfScan(
  table: Table,
  scan: { readonly index: BoundIndex; readonly bounds: IndexBounds; readonly options: ScanOptions },
): KeyRange {
  const { index, bounds, options } = scan;
  checkBounds(table, { index, bounds });
  let { lo, hi } = index.name === BY_ID ? rangeOfIds(bounds) : rangeOfBounds(bounds);
  const { after, until } = options;
  if (after !== undefined) {
    checkCursor(after);
    if (options.order === "asc") lo = larger(lo, keyAfter(after));
    else hi = smaller(hi, after);
  }
  if (until !== undefined) {
    checkCursor(until);
    if (options.order === "asc") hi = smaller(hi, keyAfter(until));
    else lo = larger(lo, until);
  }
  return { lo, hi };
}

function checkBounds(
  table: Table,
  { index, bounds }: { readonly index: BoundIndex; readonly bounds: IndexBounds },
): void {
  const ranged = bounds.lower !== undefined || bounds.upper !== undefined;
  const used = bounds.eq.length + (ranged ? 1 : 0);
  if (used > index.boundFields.length) {
    throw new EngineError(
      "bad_bounds",
      `Too many conditions for index "${index.name}" of table "${table.name}": its fields are ` +
        `${index.boundFields.join(", ")}, in this order, and ${used} are used`,
    );
  }
  const where = `index "${index.name}"`;
  for (const value of bounds.eq) checkComparable(value, where);
  if (bounds.lower !== undefined) checkComparable(bounds.lower.value, where);
  if (bounds.upper !== undefined) checkComparable(bounds.upper.value, where);
}

/** Throws an `EngineError` for a value without a position in the order of values. */
export function checkComparable(value: Value | undefined, where: string): void {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return;
    case "number":
      if (!Number.isNaN(value)) return;
      break;
    case "object":
      if (value !== null) checkStorable(value, `compare with this value in ${where}`);
      return;
    default:
      break;
  }
  throw new EngineError(
    "bad_bounds",
    `Cannot compare with ${String(value)} in ${where}: use a string, a number, a boolean, null, ` +
      "undefined for a missing field, an array or a plain object",
  );
}

const PRINTABLE = /^[ -~]*$/;

function checkCursor(cursor: string): void {
  if (typeof cursor !== "string" || !PRINTABLE.test(cursor)) {
    throw new EngineError("bad_bounds", "This is not a cursor of this query: start again without one");
  }
}

function larger(a: string, b: string): string {
  return a > b ? a : b;
}

function smaller(a: string, b: string): string {
  return a < b ? a : b;
}

/** An id is its own key. Bounds are strings; values of other types sort before or after all ids. */
function rangeOfIds({ eq, lower, upper }: IndexBounds): KeyRange {
  if (eq.length > 0) {
    const bound = { value: eq[0], inclusive: true };
    return { lo: lowestId(bound), hi: highestId(bound) };
  }
  return {
    lo: lower === undefined ? "" : lowestId(lower),
    hi: upper === undefined ? END_OF_KEYS : highestId(upper),
  };
}

function lowestId({ value, inclusive }: Bound): string {
  if (typeof value !== "string") return isAboveStrings(value) ? END_OF_KEYS : "";
  const ascii = asciiPart(value);
  if (ascii !== value) return beyond(value, ascii);
  return inclusive ? value : keyAfter(value);
}

function highestId({ value, inclusive }: Bound): string {
  if (typeof value !== "string") return isAboveStrings(value) ? END_OF_KEYS : "";
  const ascii = asciiPart(value);
  if (ascii !== value) return beyond(value, ascii);
  return inclusive ? keyAfter(value) : value;
}

function asciiPart(value: string): string {
  return /^[ -~]*/.exec(value)?.[0] ?? "";
}

/** Returns the key position of a string that is not a key: before or after those with its printable prefix. */
function beyond(value: string, ascii: string): string {
  return value.charCodeAt(ascii.length) > 0x7e ? ascii + END_OF_KEYS : keyAfter(ascii);
}

function isAboveStrings(value: Value | undefined): boolean {
  return typeof value === "object" && value !== null;
}
