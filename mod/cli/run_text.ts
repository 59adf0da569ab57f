/** Formats a run of the execution log for a terminal. */
import type { LoggedRun } from "../ops/log/mod.ts";

/** Returns one line for the run, followed by its error and log lines, indented. */
export function runText(run: LoggedRun): string {
  const { at, kind, outcome, durationMs, caller, requestId, error, logLines } = run;
  const head = `${new Date(at).toISOString()} ${kind.padEnd(8)} ${run.function} ${outcome} ${durationMs} ms` +
    ` ${caller ?? "anonymous"} request=${requestId}`;
  const lines = error === null ? logLines : [error.message, error.stack ?? "", ...logLines];
  return [
    head,
    ...lines.filter((line) => line !== "").flatMap((line) => line.split("\n")).map((line) => `    ${line}`),
  ].map(visible).join("\n");
}

/** Escapes control characters. */
function visible(line: string): string {
  return line.replaceAll(/\p{Cc}/gu, "?");
}
