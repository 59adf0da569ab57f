/** Variables of the environment that are nearly one of the server's. */
import process from "node:process";
import { environmentSuggestions } from "../../config/environment_suggestions.ts";

/** Names of the server's variables, put in when this is bundled. */
declare const SYNCLINE_VARIABLES: readonly string[];

/** Says so on standard error, a line each. */
export function tellMisspelt(): void {
  for (const hint of environmentSuggestions(Object.keys(process.env), SYNCLINE_VARIABLES)) {
    process.stderr.write(`syncline: ${hint}\n`);
  }
}
