/**
 * Result diffs of long lists, made from their JSON: only the part between the common prefix and suffix is parsed. A
 * change of one row of ten thousand costs that row and a comparison of the strings.
 */
import { commonPrefixLength, commonSuffixLength } from "../kit/common_ends.ts";
import { resultDiff } from "./result_diff.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/** The JSON of a value, and the positions of the commas between the elements of an array once they are known. */
export class ListText {
  readonly text: string;
  #commas: Uint32Array | null = null;

  constructor(text: string) {
    this.text = text;
  }

  get isList(): boolean {
    return this.text.charCodeAt(0) === 0x5b;
  }

  /** Found by a scan of the whole string, unless {@linkcode derive} has set them. */
  get commas(): Uint32Array {
    return this.#commas ??= new Uint32Array(commasOf(this.text));
  }

  /** Derives the commas from those of a list that differs in one part only. `now` is that part here. */
  derive({ commas: old, text }: ListText, part: ChangedPart, now: string): void {
    const head = old.subarray(0, part.kept);
    const inside = commasOf(`[${now}]`);
    const tail = old.subarray(part.keptFrom);
    const commas = new Uint32Array(head.length + inside.length + tail.length);
    commas.set(head);
    let at = head.length;
    for (const comma of inside) commas[at++] = part.from + comma - 1;
    const moved = this.text.length - text.length;
    for (const comma of tail) commas[at++] = comma + moved;
    this.#commas = commas;
  }
}

/**
 * Returns `resultDiff` of two JSON arrays: `null` if they are equal, `undefined` if they are no arrays or more than
 * `charsMax` characters differ.
 */
export function listDiff(
  before: ListText,
  { after, charsMax }: { readonly after: ListText; readonly charsMax: number },
): string | null | undefined {
  if (!before.isList || !after.isList) return undefined;
  const part = changedPart(before, after.text);
  const { kept, from, to } = part;
  const old = before.text.slice(from, to);
  const now = after.text.slice(from, to + after.text.length - before.text.length);
  if (old.length > charsMax || now.length > charsMax) return undefined;
  const elements: unknown[] = JSON.parse(`[${old}]`);
  let current: unknown[];
  try {
    current = JSON.parse(`[${now}]`);
  } catch {
    // The suffix begins inside a string in one of them.
    return undefined;
  }
  after.derive(before, part, now);
  const diff = resultDiff(elements, current);
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
  /** Position of the first comma after it in the older list's commas. */
  readonly keptFrom: number;
  /** Start of its elements, in both strings. */
  readonly from: number;
  /** End of its elements in the older string: at a comma, or at the end of the array. */
  readonly to: number;
}

/** Returns the elements of `before` between the common prefix and suffix. */
function changedPart({ text: before, commas }: ListText, after: string): ChangedPart {
  const shorter = Math.min(before.length, after.length);
  const head = commonPrefixLength(before, { other: after, most: shorter });
  const tail = before.length - commonSuffixLength(before, { other: after, most: shorter - head });
  const kept = firstFrom(commas, head);
  const keptFrom = firstFrom(commas, tail);
  return {
    kept,
    keptFrom,
    from: (commas[kept - 1] ?? 0) + 1,
    to: commas[keptFrom] ?? before.length - 1,
  };
}

/** Returns the index of the first position that is at least `least`. */
function firstFrom(positions: Uint32Array, least: number): number {
  let [low, high] = [0, positions.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((positions[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Finds the commas between the elements of an array. V8 discards the code of the loop if a constructor call follows it. */
function commasOf(text: string): number[] {
  const commas: number[] = [];
  let depth = 0;
  for (let at = 1; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      at = endOfString(text, at);
    } else if (char === COMMA) {
      if (depth === 0) commas.push(at);
    } else if (char === 0x7b || char === 0x5b) {
      depth++;
    } else if (char === 0x7d || char === 0x5d) {
      depth--;
    }
  }
  return commas;
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1;; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) return at;
    if (char === BACKSLASH) at++;
  }
}
