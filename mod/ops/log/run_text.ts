/** What of a run's lines and error goes into the log: all of it within bounds, and a mark where something was cut. */
import type { CallError } from "../../functions/outcome.ts";
import { functionLimits } from "../../limits.ts";
import { logLimits } from "../limits.ts";
import { lineLevels, type RunError } from "./run_record.ts";

const noLines: readonly string[] = Object.freeze([]);

/** The lines within bounds, and their characters. */
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
      `[WARN] ${left} more log lines were cut: the log keeps ${logLimits.linesCharsMax} characters of a run`,
    );
    return { lines: kept, chars };
  }
  return { lines, chars };
}

/** The highest level among lines: a position in `lineLevels` plus one, 0 without lines. */
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

/** A function's path, which a client may have made up. */
export function keptPath(udfPath: string): string {
  return cut(udfPath, logLimits.pathCharsMax);
}

function cut(text: string, max: number = functionLimits.errorCharsMax): string {
  return text.length > max ? `${text.slice(0, max - 3)}...` : text;
}
