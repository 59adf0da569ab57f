/** Variables of the environment that are nearly one of the server's: most likely they are meant to be. */
import process from "node:process";

/** Names of the server's variables, put in when this is bundled. */
declare const SYNCLINE_VARIABLES: readonly string[];

/** So many letters may be wrong. */
const LETTERS_MAX = 2;

/** Says so on standard error, a line each. */
export function tellMisspelt(): void {
  for (const hint of misspelt(Object.keys(process.env), SYNCLINE_VARIABLES)) {
    process.stderr.write(`syncline: ${hint}\n`);
  }
}

/** What is to be said of names. Those that are like no other may be of the app's own file of providers. */
export function misspelt(names: readonly string[], known: readonly string[]): string[] {
  return names.filter((name) => /^SYNCLINE_/i.test(name) && !known.includes(name)).flatMap((name) => {
    const meant = known.find((other) => distance(name.toUpperCase(), other) <= LETTERS_MAX);
    return meant === undefined ? [] : [`${name} is no variable of the server: ${meant} is`];
  });
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
