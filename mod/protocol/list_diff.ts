/**
 * Result diffs of long lists, made from their JSON: only the part between the common prefix and suffix is parsed. A
 * change of one row of ten thousand costs that row and a comparison of the strings.
 */
import { resultDiff } from "./result_diff.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/**
 * Returns `resultDiff` of two JSON arrays: `null` if they are equal, `undefined` if they are no arrays or more than
 * `charsMax` characters differ.
 */
export function listDiff(
  before: string,
  { after, charsMax }: { readonly after: string; readonly charsMax: number },
): string | null | undefined {
  if (before.charCodeAt(0) !== 0x5b || after.charCodeAt(0) !== 0x5b) return undefined;
  const { kept, from, to } = changedPart(before, after);
  const old = before.slice(from, to + before.length - after.length);
  const now = after.slice(from, to);
  if (old.length > charsMax || now.length > charsMax) return undefined;
  let elements: readonly unknown[];
  try {
    elements = JSON.parse(`[${old}]`);
  } catch {
    // The suffix begins inside a string in one of them.
    return undefined;
  }
  const diff = resultDiff(elements, JSON.parse(`[${now}]`));
  if (diff === null) return null;
  const ops = /^\{"\$a":\[(.*)\]\}$/s.exec(diff)?.[1] ?? replaced(elements.length, now);
  if (kept === 0) return `{"$a":[${ops}]}`;
  // Elements kept at the start of the part are added to those before it.
  const more = /^\d+(?=,|$)/.exec(ops)?.[0] ?? "";
  return `{"$a":[${kept + Number(more)}${more === "" ? "," : ""}${ops.slice(more.length)}]}`;
}

function replaced(count: number, elements: string): string {
  return [...count > 0 ? [String(-count)] : [], ...elements === "" ? [] : [`[${elements}]`]].join(",");
}

interface ChangedPart {
  /** Number of elements before it. */
  readonly kept: number;
  /** Start of its elements, in both strings. */
  readonly from: number;
  /** End of its elements in the newer string: at a comma, or at the end of the array. */
  readonly to: number;
}

/** Returns the elements of `after` between the common prefix and suffix. */
function changedPart(before: string, after: string): ChangedPart {
  const shorter = Math.min(before.length, after.length);
  const head = commonPrefixLength(before, { other: after, most: shorter });
  const tail = after.length - commonSuffixLength(before, { other: after, most: shorter - head });
  let kept = 0;
  let from = 1;
  let depth = 0;
  const last = after.length - 1;
  for (let at = 1; at < last; at++) {
    const char = after.charCodeAt(at);
    if (char === QUOTE) {
      at = endOfString(after, at);
    } else if (char === COMMA) {
      if (depth > 0) continue;
      if (at >= tail) return { kept, from, to: at };
      if (at >= head) continue;
      kept++;
      from = at + 1;
    } else if (char === 0x7b || char === 0x5b) {
      depth++;
    } else if (char === 0x7d || char === 0x5d) {
      depth--;
    }
  }
  return { kept, from, to: last };
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1;; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) return at;
    if (char === BACKSLASH) at++;
  }
}

interface Compared {
  readonly other: string;
  /** Limit of the comparison, in characters. */
  readonly most: number;
}

/** Returns the length of the common prefix. Compares long stretches at once, which is much faster than a loop. */
function commonPrefixLength(text: string, { other, most }: Compared): number {
  let same = 0;
  for (let end = most; same < end;) {
    const middle = (same + end + 1) >>> 1;
    if (text.slice(same, middle) === other.slice(same, middle)) same = middle;
    else end = middle - 1;
  }
  return same;
}

function commonSuffixLength(text: string, { other, most }: Compared): number {
  const [textEnd, otherEnd] = [text.length, other.length];
  let same = 0;
  for (let end = most; same < end;) {
    const middle = (same + end + 1) >>> 1;
    const equal =
      text.slice(textEnd - middle, textEnd - same) === other.slice(otherEnd - middle, otherEnd - same);
    if (equal) same = middle;
    else end = middle - 1;
  }
  return same;
}
