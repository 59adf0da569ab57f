/** Rewrites file paths in text that leaves the isolate to the author's paths. */
import { authorTexts, type CodePlace } from "../../wire/code_place.ts";

let authored = (text: string): string => text;

/** Sets the location of the code and the author's original location. Called once, before the app is loaded. */
export function setCodePlace(place: CodePlace): void {
  authored = authorTexts(place);
}

/** Returns the text with the author's file paths. */
export function asAuthored(text: string): string {
  return authored(text);
}
