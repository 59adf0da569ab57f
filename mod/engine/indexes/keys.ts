/**
 * Order-preserving index keys: printable ASCII strings whose byte order is the order of the values. The order is
 * missing < null < number < boolean < string < array < object. Strings compare by UTF-16 code units, arrays by element,
 * objects by entry in the order of their field names, prefixes first.
 *
 * Each encoding starts with a tag and marks its own end, so none is a prefix of another and a sequence is the
 * concatenation. It uses the characters 0x20 to 0x7e; 0x20 ends variable-length values.
 */
import { END_OF_KEYS, type Value } from "../types.ts";
import type { IndexBounds } from "../read_options.ts";

const MISSING = "1";
const NULL = "2";
const NUMBER = "3";
const FALSE = "4";
const TRUE = "5";
const STRING = "6";
const ARRAY = "7";
const OBJECT = "8";
/** Precedes each entry of an object; sorts after {@linkcode END}. */
const ENTRY = "1";
/** Sorts before all other characters of a key. */
const END = " ";

/** 64 characters in ASCII order; JSON escapes none of them. */
const DIGITS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
/** Two characters for each 12 bits. */
const pairs: string[] = [];
for (const first of DIGITS) for (const second of DIGITS) pairs.push(first + second);

const float = new Float64Array(1);
const words = new Uint32Array(float.buffer);

/** Code units encoded as themselves: 0x22 to 0x7d. */
const PLAIN = /^["-}]*$/;
const PLAIN_MIN = 0x22;
const PLAIN_MAX = 0x7d;
const LOWER = "!";
const HIGHER = "~";

/** Encodes a number (not NaN): 64 bits from the top, 12 at a time, without trailing zeros. `-0` is `0`. */
export function numberKey(value: number): string {
  float[0] = value + 0;
  let low = words[0] ?? 0;
  let high = words[1] ?? 0;
  if (high >>> 31 === 1) {
    high = ~high >>> 0;
    low = ~low >>> 0;
  } else {
    high = (high | 0x80000000) >>> 0;
  }
  const head = pair(high >>> 20);
  const middle = (high >>> 8) & 0xfff;
  const third = ((high & 0xff) << 4) | (low >>> 28);
  const rest = low & 0x0fffffff;
  if (rest === 0) {
    if (third === 0) return middle === 0 ? head + END : head + pair(middle) + END;
    return head + pair(middle) + pair(third) + END;
  }
  const fourth = pair(rest >>> 16);
  const fifth = (rest >>> 4) & 0xfff;
  const last = rest & 15;
  const start = head + pair(middle) + pair(third) + fourth;
  if (last !== 0) return start + pair(fifth) + DIGITS.charAt(last) + END;
  return fifth === 0 ? start + END : start + pair(fifth) + END;
}

function pair(bits: number): string {
  return pairs[bits] ?? "";
}

/** Encodes a string without its tag. */
function stringKey(value: string): string {
  if (PLAIN.test(value)) return value + END;
  let key = "";
  let plainFrom = 0;
  for (let index = 0; index < value.length; index++) {
    const code = value.charCodeAt(index);
    if (code >= PLAIN_MIN && code <= PLAIN_MAX) continue;
    key += value.slice(plainFrom, index);
    plainFrom = index + 1;
    key += code < PLAIN_MIN
      ? LOWER + DIGITS.charAt(code)
      : HIGHER + DIGITS.charAt(code >>> 12) + pair(code & 0xfff);
  }
  return key + value.slice(plainFrom) + END;
}

/** Returns the key of a value; `undefined` is a missing field. Throws a `TypeError` for anything but a {@linkcode Value}. */
export function valueKey(value: Value | undefined): string {
  switch (typeof value) {
    case "string":
      return STRING + stringKey(value);
    case "number":
      if (value !== value) throw new TypeError("NaN has no place in the order of values");
      return NUMBER + numberKey(value);
    case "boolean":
      return value ? TRUE : FALSE;
    case "undefined":
      return MISSING;
    case "object": {
      if (value === null) return NULL;
      if (Array.isArray(value)) {
        let key = ARRAY;
        for (const element of value) key += valueKey(element);
        return key + END;
      }
      let key = OBJECT;
      for (const name of Object.keys(value).sort()) {
        const field = value[name];
        if (field !== undefined) key += ENTRY + stringKey(name) + valueKey(field);
      }
      return key + END;
    }
    default:
      throw new TypeError(`A ${typeof value} has no place in the order of values`);
  }
}

export function encodeKey(values: readonly (Value | undefined)[]): string {
  let key = "";
  for (const value of values) key += valueKey(value);
  return key;
}

/** Returns the smallest key after `key`. Keys are never prefixes of each other. */
export function keyAfter(key: string): string {
  return key + END;
}

/** Keys from `lo` (inclusive) to `hi` (exclusive). Empty if `lo >= hi`. */
export interface KeyRange {
  readonly lo: string;
  readonly hi: string;
}

export function rangeOfBounds(bounds: IndexBounds): KeyRange {
  const prefix = encodeKey(bounds.eq);
  const { lower, upper } = bounds;
  let lo = prefix;
  let hi = prefix + END_OF_KEYS;
  if (lower !== undefined) {
    lo = prefix + valueKey(lower.value);
    if (!lower.inclusive) lo += END_OF_KEYS;
  }
  if (upper !== undefined) {
    hi = prefix + valueKey(upper.value);
    if (upper.inclusive) hi += END_OF_KEYS;
  }
  return { lo, hi };
}

/** Reference implementation of the order of values. Returns a negative number, zero or a positive number. */
export function compareValues(a: Value | undefined, b: Value | undefined): number {
  const rank = rankOf(a) - rankOf(b);
  if (rank !== 0) return rank;
  if (typeof a === "number" && typeof b === "number") return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  if (Array.isArray(a) && Array.isArray(b)) return compareArrays(a, b);
  if (isObject(a) && isObject(b)) return compareArrays(entriesInOrder(a), entriesInOrder(b));
  return 0;
}

function rankOf(value: Value | undefined): number {
  if (value === undefined) return 0;
  if (value === null) return 1;
  if (typeof value === "number") return 2;
  if (typeof value === "boolean") return 3;
  if (typeof value === "string") return 4;
  return Array.isArray(value) ? 5 : 6;
}

function isObject(value: Value | undefined): value is { [field: string]: Value } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function compareArrays(a: readonly Value[], b: readonly Value[]): number {
  for (let index = 0; index < a.length && index < b.length; index++) {
    const order = compareValues(a[index], b[index]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Returns names and values of an object, sorted by name. */
function entriesInOrder(value: { [field: string]: Value }): Value[] {
  return Object.keys(value).sort().flatMap((name) => [name, value[name] ?? null]);
}
