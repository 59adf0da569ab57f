/** What the runtime says of an app's code, as its author reads it: files with their whole path, none of the runtime's own words. */
import { join } from "node:path";

/** Everything behind it is about the runtime. */
const OF_ITSELF = /\n*^\s*(?:Stack backtrace|stack backtrace):[^]*$/m;
/** Lines about switches of a program that nobody here has started. */
const SWITCHES =
  /^\s*(?:error: Type checking failed\.?|(?:info|hint): .*|.*\bRe-run with\b.*|Check file:.*)\s*$\n?/gm;
const SLOPPY = / or run with --sloppy-imports/g;
const HEAD = /^error: (?:Uncaught (?:\(in promise\) )?)?/gm;
/** A place in a file that is named from the functions folder. */
const PLACE = /(^|[\s(])((?:[\w$.@-]+\/)*[\w$.@-]+\.[cm]?[jt]sx?)(:\d+:\d+)/gm;

/** The report of a check, without what it says of itself. */
export function plainReport(report: string): string {
  // deno-lint-ignore no-control-regex -- colours are codes of a terminal
  return report.replaceAll(/\x1b\[[\d;]*m/g, "").replace(OF_ITSELF, "").replaceAll(SWITCHES, "")
    .replaceAll(SLOPPY, "").replaceAll(HEAD, "").replaceAll("file:///", "/").trim();
}

/** A message with the whole paths of the app's files, which it names from `folder` on. */
export function withWholePaths(message: string, folder: string): string {
  return message.replaceAll(
    PLACE,
    (_all, before: string, file: string, at: string) => `${before}${join(folder, file)}${at}`,
  );
}
