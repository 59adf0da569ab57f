/** Warns about environment variables that resemble a variable of the server. */
import process from "node:process";
import { environmentSuggestions } from "../../config/env_file.ts";

/** Names of the server's variables, inserted by the build. */
declare const SYNCLINE_VARIABLES: readonly string[];

/** Prints the warnings to standard error, one line each. */
export function warnMisspelledVariables(): void {
  for (const hint of environmentSuggestions(Object.keys(process.env), SYNCLINE_VARIABLES)) {
    process.stderr.write(`syncline: ${hint}\n`);
  }
}
