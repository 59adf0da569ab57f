/** What leaves an isolate as text names files of the app as their author knows them. */
import { authorTexts, type CodePlace } from "../../wire/code_place.ts";

let authored = (text: string): string => text;

/** Tells where the app's code is, and where its author has it. Called once, before the app is loaded. */
export function setCodePlace(place: CodePlace): void {
  authored = authorTexts(place);
}

/** The text with the author's names of files. */
export function asAuthored(text: string): string {
  return authored(text);
}
