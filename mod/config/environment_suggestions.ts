/** Suggests corrections for misspelled `SYNCLINE_*` environment variables. */

const LETTERS_MAX = 2;

/** Returns a sentence for each unknown name that resembles a known one. Others may be used by the app itself. */
export function environmentSuggestions(names: readonly string[], known: readonly string[]): string[] {
  return names.filter((name) => /^SYNCLINE_/i.test(name) && !known.includes(name)).flatMap((name) => {
    const meant = nearest(name.toUpperCase(), known);
    return meant === null ? [] : [`Unknown variable ${name}: did you mean ${meant}?`];
  });
}

/** Returns the known name with the smallest edit distance, or `null` if none is close enough. */
function nearest(name: string, known: readonly string[]): string | null {
  let found: string | null = null;
  let fewest = LETTERS_MAX + 1;
  for (const other of known) {
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
