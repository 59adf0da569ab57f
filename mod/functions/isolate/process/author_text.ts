/** Rewrites file names in text that leaves the isolate to the author's paths. */
import { authorTexts } from "../../wire/app_sources.ts";

let authored = (text: string): string => text;

/** Sets the author's location of the code. Called once, before the app is loaded. */
export function setAuthorFolder(folder: string): void {
  authored = authorTexts(folder);
}

/** Returns the text with the author's file paths. */
export function asAuthored(text: string): string {
  return authored(text);
}
