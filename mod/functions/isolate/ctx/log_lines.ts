/** The log lines of one call: `[LEVEL] message key=value ...`, limited in number and length. */
import { functionLimits } from "../../../limits.ts";
import { asAuthored } from "../process/author_text.ts";

const { stringify } = JSON;
const { inspect } = Deno;

export type LogLevel = "DEBUG" | "INFO" | "WARN" | "ERROR";

/** Collects the lines of a call and its nested calls. */
export class LogLines {
  #lines: string[] | null = null;
  #dropped = 0;
  #taken = false;

  /** Whether the lines were already sent. Later ones are not. */
  get taken(): boolean {
    return this.#taken;
  }

  /** Adds a line. Lines beyond the limit are only counted. */
  add(level: LogLevel, message: unknown, fields?: Record<string, unknown>): void {
    if (!this.#room()) return;
    let line = `[${level}] ${typeof message === "string" ? message : inspected(message)}`;
    if (fields !== undefined && fields !== null && line.length < functionLimits.logLineCharsMax) {
      line += fieldsText(fields);
    }
    this.#push(line);
  }

  /** Adds console output. */
  addConsole(level: LogLevel, values: readonly unknown[]): void {
    if (!this.#room()) return;
    this.#push(`[${level}] ${consoleText(values)}`);
  }

  /** Adds formatted lines of a function called elsewhere. */
  addAll(lines: readonly string[]): void {
    for (const line of lines) if (this.#room()) this.#push(line);
  }

  /** Returns the lines, with a count of dropped ones. */
  take(): readonly string[] {
    this.#taken = true;
    if (this.#lines === null) return noLines;
    if (this.#dropped > 0) {
      this.#lines.push(
        `[WARN] ${this.#dropped} more log lines were dropped: a call keeps ${functionLimits.logLinesMax}`,
      );
      this.#dropped = 0;
    }
    return this.#lines;
  }

  #room(): boolean {
    if (this.#lines === null) this.#lines = [];
    if (this.#lines.length < functionLimits.logLinesMax) return true;
    this.#dropped++;
    return false;
  }

  #push(line: string): void {
    const max = functionLimits.logLineCharsMax;
    const text = asAuthored(line);
    this.#lines?.push(text.length > max ? `${text.slice(0, max - 3)}...` : text);
  }
}

const noLines: readonly string[] = Object.freeze([]);

export function consoleText(values: readonly unknown[]): string {
  return values.map((value) => typeof value === "string" ? value : inspected(value)).join(" ");
}

function fieldsText(fields: Record<string, unknown>): string {
  let text = "";
  try {
    for (const key of Object.keys(fields)) text += ` ${key}=${fieldText(fields[key])}`;
  } catch (error) {
    return `${text} (fields could not be read: ${inspected(error)})`;
  }
  return text;
}

/** Unquoted if unambiguous, JSON otherwise. */
function fieldText(value: unknown): string {
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? value : stringify(value);
  if (typeof value === "object" && value !== null && !(value instanceof Error)) {
    try {
      return stringify(value) ?? "undefined";
    } catch {
      return stringify(inspected(value));
    }
  }
  return value instanceof Error ? stringify(String(value)) : String(value);
}

/** Formats a value without throwing. */
export function inspected(value: unknown): string {
  try {
    return inspect(value, { depth: 4, strAbbreviateSize: functionLimits.logLineCharsMax });
  } catch {
    return "(a value that cannot be shown)";
  }
}
