/** Checks the types of an app's functions in the background (`--dev`). */
import { dirname } from "node:path";
import { BACKGROUND_NICENESS } from "../../kit/processes/helper_process.ts";
import { programConfig } from "../../kit/processes/program.ts";
import { cleanReport } from "./error_report.ts";

/** Import map and compiler options of the functions. */
const CONFIG = programConfig();
const REPORT_CHARS_MAX = 8_192;

export type TypeCheckResult = { readonly ok: true } | { readonly ok: false; readonly report: string };

/** Runs the type checker in its own process. Returns `null` if `signal` is aborted. */
export async function checkTypes(folder: string, signal: AbortSignal): Promise<TypeCheckResult | null> {
  if (signal.aborted) return null;
  const zod = await ownZodVersion();
  const packages = await packagesFolder(folder, zod);
  // Started through sh, the only program the server may run. Low priority: an edit is served before it is checked.
  const child = new Deno.Command("sh", {
    args: [
      "-c",
      `exec nice -n ${BACKGROUND_NICENESS} "$0" "$@"`,
      Deno.execPath(),
      "check",
      "--quiet",
      ...packages === null
        ? ["--frozen", "--config", CONFIG]
        : ["--no-lock", "--no-config", `--import-map=${CONFIG}`, "--node-modules-dir=manual"],
      folder,
    ],
    // The checker resolves packages from here.
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
  const report = cleanReport(new TextDecoder().decode(stderr)).slice(0, REPORT_CHARS_MAX);
  const hint = packages === null && /not a dependency and not in import map/.test(report)
    ? `\nTo check packages, install zod ${zod} beside them: npm install zod@${zod}`
    : "";
  return { ok: false, report: report + hint };
}

async function ownZodVersion(): Promise<string> {
  const { imports } = JSON.parse(await Deno.readTextFile(CONFIG)) as { imports: Record<string, string> };
  return imports["zod"]?.split("@").at(-1) ?? "";
}

/**
 * Returns the folder whose `node_modules` contains the app's packages, or `null` if it has none. The checker resolves all
 * packages from one folder, so it must contain the version of zod that functions run with.
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
