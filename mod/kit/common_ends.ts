/** Lengths of the common prefix and suffix of two strings. Compares long stretches at once, which is much faster than a loop. */

interface Compared {
  readonly other: string;
  /** Limit of the comparison, in characters. */
  readonly most: number;
}

export function commonPrefixLength(text: string, { other, most }: Compared): number {
  let same = 0;
  for (let end = most; same < end;) {
    const middle = (same + end + 1) >>> 1;
    if (text.slice(same, middle) === other.slice(same, middle)) same = middle;
    else end = middle - 1;
  }
  return same;
}

export function commonSuffixLength(text: string, { other, most }: Compared): number {
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
