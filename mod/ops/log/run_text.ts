/** Truncates a run's lines and error for the log, marking truncated parts. */
import type { CallError } from "../../functions/outcome.ts";
import { functionLimits } from "../../limits.ts";
import { logLimits } from "../limits.ts";
import { lineLevels, type RunError } from "./run_record.ts";

const noLines: readonly string[] = Object.freeze([]);

/** Returns the lines within the limit, and their number of characters. */
export function keptLines(
  lines: readonly string[],
): { readonly lines: readonly string[]; readonly chars: number } {
  if (lines.length === 0) return { lines: noLines, chars: 0 };
  let chars = 0;
  for (const [position, line] of lines.entries()) {
    chars += line.length;
    if (chars <= logLimits.linesCharsMax) continue;
    const kept = lines.slice(0, position);
    const left = lines.length - position;
    kept.push(
      `[WARN] ${left} more log lines were truncated (limit: ${logLimits.linesCharsMax} characters per run)`,
    );
    return { lines: kept, chars };
  }
  return { lines, chars };
}

/** Returns the highest level: index of `lineLevels` plus one, or 0 without lines. */
export function levelOf(lines: readonly string[]): number {
  let level = 0;
  for (const line of lines) {
    const found = lineLevels.findIndex((name) => line.startsWith(`[${name}]`)) + 1;
    if (found > level) level = found;
  }
  return level;
}

export function runError({ kind, message, data, stack }: CallError): RunError {
  return {
    kind,
    message: cut(message),
    ...(data !== null && { code: cut(data.code) }),
    ...(stack !== undefined && { stack: cut(stack) }),
  };
}

/** Truncates a function path, which may be made up by a client. */
export function keptPath(udfPath: string): string {
  return cut(udfPath, logLimits.pathCharsMax);
}

function cut(text: string, max: number = functionLimits.errorCharsMax): string {
  return text.length > max ? `${text.slice(0, max - 3)}...` : text;
}
