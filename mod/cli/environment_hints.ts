/** Warnings about the environment a server is started with. */
import { environmentSuggestions } from "../config/environment_suggestions.ts";
import { options } from "../config/options.ts";

/** Variables that are not options: set by the tasks of this repository and by the npm package. */
const FURTHER = ["SYNCLINE_PROGRAM"];

const EXPORTED = /^(?:export|declare -x) (SYNCLINE_\w+)/gim;

/**
 * Returns warnings about misspelled `SYNCLINE_*` variables. The permission set only allows reading known variables, so the
 * names are listed by a shell. Returns none without a shell, or if the npm package, which has its own check, started this.
 */
export async function environmentHints(): Promise<readonly string[]> {
  if (Deno.build.os === "windows" || Deno.env.get("SYNCLINE_PROGRAM") !== undefined) return [];
  try {
    const { stdout } = await new Deno.Command("sh", {
      args: ["-c", "export -p"],
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).output();
    const names = [...new TextDecoder().decode(stdout).matchAll(EXPORTED)].map(([, name = ""]) => name);
    return environmentSuggestions(names, [...Object.values(options).map(({ env }) => env), ...FURTHER]);
  } catch (error) {
    // The server does not need a shell.
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotCapable) return [];
    throw error;
  }
}
