/** Suggests corrections for misspelled `SYNCLINE_*` environment variables. */
import { nearest } from "../kit/nearest.ts";

/** Returns a sentence for each unknown name that resembles a known one. Others may be used by the app itself. */
export function environmentSuggestions(names: readonly string[], known: readonly string[]): string[] {
  return names.filter((name) => /^SYNCLINE_/i.test(name) && !known.includes(name)).flatMap((name) => {
    const meant = nearest(name.toUpperCase(), known);
    return meant === null ? [] : [`Unknown variable ${name}: did you mean ${meant}?`];
  });
}
