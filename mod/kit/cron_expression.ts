/** Cron expressions in UTC: a thin face of the library that parses them. */
import { Cron } from "croner";

/** Fields of an expression: minute, hour, day of month, month, day of week, with seconds in front if there are six. */
const FIELDS = /^\s*\S+(?:\s+\S+){4,5}\s*$/;
const NICKNAME = /^\s*@\w+\s*$/;

/** What is wrong with an expression, or `null`. */
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

/** The first time after `after` that an expression names, in milliseconds since the epoch; `null` when none comes. */
export function nextCronTime(expression: string, after: number): number | null {
  // Paused: without it the library would wait for the time itself.
  const cron = new Cron(expression, { paused: true, utcOffset: 0 });
  return cron.nextRun(new Date(after))?.getTime() ?? null;
}
