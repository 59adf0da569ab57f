/** Rewrites the runtime's messages about an app's code for its author: full paths, and no advice about the runtime. */
import { join } from "node:path";

/** Everything from here on concerns the runtime itself. */
const OF_ITSELF = /\n*^\s*(?:Stack backtrace|stack backtrace):[^]*$/m;
/** Lines about flags of the runtime, which the author did not start. */
const SWITCHES =
  /^\s*(?:error: Type checking failed\.?|(?:info|hint): .*|.*\bRe-run with\b.*|Check file:.*)\s*$\n?/gm;
const SLOPPY = / or run with --sloppy-imports/g;
const HEAD = /^error: (?:Uncaught (?:\(in promise\) )?)?/gm;
/** A file position relative to the functions folder. */
const PLACE = /(^|[\s(])((?:[\w$.@-]+\/)*[\w$.@-]+\.[cm]?[jt]sx?)(:\d+:\d+)/gm;

/** Returns the report of a type check without colors and advice about the runtime. */
export function cleanReport(report: string): string {
  // deno-lint-ignore no-control-regex -- colors are terminal escape codes
  return report.replaceAll(/\x1b\[[\d;]*m/g, "").replace(OF_ITSELF, "").replaceAll(SWITCHES, "")
    .replaceAll(SLOPPY, "").replaceAll(HEAD, "").replaceAll("file:///", "/").trim();
}

/** Replaces file names relative to `folder` with full paths. */
export function withFullPaths(message: string, folder: string): string {
  return message.replaceAll(
    PLACE,
    (_all, before: string, file: string, at: string) => `${before}${join(folder, file)}${at}`,
  );
}
