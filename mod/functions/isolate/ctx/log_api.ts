/** `ctx.log` and the console of app code. */
import type { Log } from "../../api/context.ts";
import type { LogLevel, LogLines } from "./log_lines.ts";

export class LogApi implements Log {
  readonly #lines: LogLines;

  constructor(lines: LogLines) {
    this.#lines = lines;
  }

  debug(message: string, fields?: Record<string, unknown>): void {
    this.#lines.add("DEBUG", message, fields);
  }

  info(message: string, fields?: Record<string, unknown>): void {
    this.#lines.add("INFO", message, fields);
  }

  warn(message: string, fields?: Record<string, unknown>): void {
    this.#lines.add("WARN", message, fields);
  }

  error(message: string, fields?: Record<string, unknown>): void {
    this.#lines.add("ERROR", message, fields);
  }
}

/** Log level of each console method that prints. The others do nothing. */
const consoleLevels: Readonly<Record<string, LogLevel>> = {
  log: "INFO",
  info: "INFO",
  debug: "DEBUG",
  trace: "DEBUG",
  warn: "WARN",
  error: "ERROR",
  dir: "INFO",
  dirxml: "INFO",
  table: "INFO",
  group: "INFO",
  groupCollapsed: "INFO",
};

/** A console that passes output to `print`. */
export function captureConsole(
  original: Console,
  print: (level: LogLevel, values: unknown[]) => void,
): Console {
  const captured: Record<string, unknown> = {};
  for (const name of Object.keys(original)) {
    if (typeof (original as unknown as Record<string, unknown>)[name] !== "function") continue;
    const level = consoleLevels[name];
    captured[name] = level === undefined ? () => {} : (...values: unknown[]) => print(level, values);
  }
  captured["assert"] = (condition: unknown, ...values: unknown[]) => {
    if (!condition) print("ERROR", ["Assertion failed", ...values]);
  };
  return captured as unknown as Console;
}
