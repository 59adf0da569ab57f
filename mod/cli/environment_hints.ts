/** Hints on the environment that a server is started with. */
import { environmentSuggestions } from "../config/environment_suggestions.ts";
import { options } from "../config/options.ts";

/** Names that are no options: the tasks of this repository and the package of npm set them. */
const FURTHER = ["SYNCLINE_PROGRAM"];

const EXPORTED = /^(?:export|declare -x) (SYNCLINE_\w+)/gim;

/**
 * What is to be said of variables that are nearly one of the server's. The program may read those alone that it knows by
 * name; the shell, which it may start, tells them all. Nothing is said where there is no shell, or where the package of npm,
 * which looks by itself, has started this.
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
    // A server without a shell serves all the same.
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotCapable) return [];
    throw error;
  }
}
