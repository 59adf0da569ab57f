/** Finds the known name that a misspelled one probably means. */

/** Maximum edit distance of a suggestion. */
const LETTERS_MAX = 2;
/** Longer names get no suggestion, because a comparison takes the product of the lengths. */
const CHARS_MAX = 200;

/** Returns the known name with the smallest edit distance, or `null` if none is close enough. */
export function nearest(name: string, known: readonly string[]): string | null {
  if (name.length > CHARS_MAX) return null;
  let found: string | null = null;
  let fewest = LETTERS_MAX + 1;
  for (const other of known) {
    if (Math.abs(other.length - name.length) > LETTERS_MAX) continue;
    const letters = distance(name, other);
    if (letters < fewest) [found, fewest] = [other, letters];
  }
  return found;
}

/** Levenshtein distance. */
function distance(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let row = 1; row <= from.length; row++) {
    const line = [row];
    for (let at = 1; at <= to.length; at++) {
      const replaced = (above[at - 1] ?? 0) + (from[row - 1] === to[at - 1] ? 0 : 1);
      line.push(Math.min(replaced, (above[at] ?? 0) + 1, (line[at - 1] ?? 0) + 1));
    }
    above = line;
  }
  return above[to.length] ?? 0;
}
