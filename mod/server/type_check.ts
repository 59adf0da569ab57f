/** Checks the types of an app's functions in the background while they are edited (`--dev`). */
import { fileURLToPath } from "node:url";

/** The import map and compiler options that functions are checked with: those they run with. */
const CONFIG = fileURLToPath(new URL("../../deno.json", import.meta.url));
/** Characters of the checker's report that are shown. */
const REPORT_CHARS_MAX = 8_192;

export type TypeCheckResult = { readonly ok: true } | { readonly ok: false; readonly report: string };

/**
 * Runs the checker in a process of its own. `null` when it was ended by `signal`, or when there is no checker: a compiled
 * server has none.
 */
export async function checkTypes(folder: string, signal: AbortSignal): Promise<TypeCheckResult | null> {
  if (Deno.build.standalone || signal.aborted) return null;
  // Through the shell, the one program the server may start; it is replaced by the checker.
  const child = new Deno.Command("sh", {
    args: [
      "-c",
      'exec "$0" "$@"',
      Deno.execPath(),
      "check",
      "--quiet",
      "--frozen",
      "--config",
      CONFIG,
      folder,
    ],
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
    signal,
  }).spawn();
  const { success, stderr } = await child.output();
  if (signal.aborted) return null;
  if (success) return { ok: true };
  return { ok: false, report: new TextDecoder().decode(stderr).trim().slice(0, REPORT_CHARS_MAX) };
}
