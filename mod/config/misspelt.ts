/** Variables of the environment that are nearly one of the server's: most likely they are meant to be. */

/** So many letters may be wrong. */
const LETTERS_MAX = 2;

/** What is to be said of names. Those that are like no other may be of the app's own file of providers. */
export function misspelt(names: readonly string[], known: readonly string[]): string[] {
  return names.filter((name) => /^SYNCLINE_/i.test(name) && !known.includes(name)).flatMap((name) => {
    const meant = nearest(name.toUpperCase(), known);
    return meant === null ? [] : [`${name} is no variable of the server: ${meant} is`];
  });
}

/** The known name with the fewest letters to change; `null` when all have too many. */
function nearest(name: string, known: readonly string[]): string | null {
  let found: string | null = null;
  let fewest = LETTERS_MAX + 1;
  for (const other of known) {
    const letters = distance(name, other);
    if (letters < fewest) [found, fewest] = [other, letters];
  }
  return found;
}

/** Letters to add, remove or replace. */
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
