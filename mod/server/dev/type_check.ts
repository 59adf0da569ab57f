/** Checks the types of an app's functions in the background while they are edited (`--dev`). */
import { dirname } from "node:path";
import { programConfig } from "../../kit/processes/program_config.ts";
import { plainReport } from "./author_report.ts";

/** The import map and compiler options that functions are checked with: those they run with, and no more packages. */
const CONFIG = programConfig();
/** Characters of the checker's report that are shown. */
const REPORT_CHARS_MAX = 8_192;

export type TypeCheckResult = { readonly ok: true } | { readonly ok: false; readonly report: string };

/** Runs the checker in a process of its own. `null` when it was ended by `signal`. */
export async function checkTypes(folder: string, signal: AbortSignal): Promise<TypeCheckResult | null> {
  if (signal.aborted) return null;
  const zod = await ownZodVersion();
  const packages = await packagesFolder(folder, zod);
  // Through the shell, the one program the server may start; it is replaced by the checker, which goes behind the server: an
  // edit is to be served first.
  const child = new Deno.Command("sh", {
    args: [
      "-c",
      'exec nice -n 19 "$0" "$@"',
      Deno.execPath(),
      "check",
      "--quiet",
      ...packages === null
        ? ["--frozen", "--config", CONFIG]
        : ["--no-lock", "--no-config", `--import-map=${CONFIG}`, "--node-modules-dir=manual"],
      folder,
    ],
    // From here the checker looks for the packages that our own files need.
    ...(packages !== null && { cwd: packages }),
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
    signal,
  }).spawn();
  const { success, stderr } = await child.output();
  if (signal.aborted) return null;
  if (success) return { ok: true };
  const report = plainReport(new TextDecoder().decode(stderr)).slice(0, REPORT_CHARS_MAX);
  const hint = packages === null && /not a dependency and not in import map/.test(report)
    ? `\nPackages are checked when zod ${zod} is installed with them: npm install zod@${zod}`
    : "";
  return { ok: false, report: report + hint };
}

/** The version of zod that functions run with. */
async function ownZodVersion(): Promise<string> {
  const { imports } = JSON.parse(await Deno.readTextFile(CONFIG)) as { imports: Record<string, string> };
  return imports["zod"]?.split("@").at(-1) ?? "";
}

/**
 * The folder in whose `node_modules` the checker finds the app's packages; `null` for an app that has none. The checker
 * takes every package from one place, so zod of the version that functions run with has to be among them.
 */
async function packagesFolder(functionsDir: string, zod: string): Promise<string | null> {
  for (let folder = functionsDir;; folder = dirname(folder)) {
    try {
      const manifest = await Deno.readTextFile(`${folder}/node_modules/zod/package.json`);
      return (JSON.parse(manifest) as { readonly version?: unknown }).version === zod ? folder : null;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory)) return null;
    }
    if (folder === dirname(folder)) return null;
  }
}
