/** Cron expressions in UTC, parsed by the `croner` library. */
import { Cron } from "croner";

/** Minute, hour, day of month, month, day of week; with six fields, seconds come first. */
const FIELDS = /^\s*\S+(?:\s+\S+){4,5}\s*$/;
const NICKNAME = /^\s*@\w+\s*$/;

/** Returns the error in an expression, or `null`. */
export function cronExpressionFault(expression: string): string | null {
  if (!FIELDS.test(expression) && !NICKNAME.test(expression)) {
    return "an expression has five fields: minute, hour, day of month, month, day of week";
  }
  try {
    return nextCronTime(expression, 0) === null ? "it names no time that ever comes" : null;
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
  }
}

/** Returns the first time after `after` that matches, in milliseconds since the epoch; `null` if there is none. */
export function nextCronTime(expression: string, after: number): number | null {
  // Paused: otherwise the library starts a timer.
  const cron = new Cron(expression, { paused: true, utcOffset: 0 });
  return cron.nextRun(new Date(after))?.getTime() ?? null;
}
