/** Log messages of the server: one line each, on standard error. */
import { docsPath, helpFields } from "../explained.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Logs one message. Fields follow it as `key=value`. */
export interface Log {
  (level: LogLevel, message: string, fields?: Record<string, unknown>): void;
  /** Called with each written line. Absent for a log that has only one receiver. */
  readonly receivers?: Set<LogReceiver>;
  /** Writes without forwarding to the receivers. Absent if there are none. */
  readonly stderrOnly?: Log;
}

/** A line with plain fields, as it is sent to another process or server. */
export interface LoggedLine {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, string | number | boolean>>;
}

/** Must not throw, and must not log. */
export type LogReceiver = (line: LoggedLine) => void;

export interface LogLineOptions {
  readonly at: Date;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields?: Record<string, unknown>;
}

/** Formats `2026-01-31T12:00:00.000Z WARN message key=value`. Only stack traces (errors, `stack`) add lines. */
export function logLine({ at, level, message, fields = {} }: LogLineOptions): string {
  const stacks: string[] = [];
  let line = `${at.toISOString()} ${level.toUpperCase().padEnd(5)} ${message}`;
  for (const [key, value] of Object.entries(fields)) {
    if (key === "stack" && typeof value === "string") {
      stacks.push(visible(value));
      continue;
    }
    line += ` ${key}=${fieldText(value)}`;
    if (Error.isError(value) && value.stack !== undefined) stacks.push(value.stack);
  }
  return [line, ...stacks].join("\n") + "\n";
}

/** Returns the fields with objects, and numbers that JSON lacks, as strings. The stack of an error becomes the field `stack`. */
export function plainFields(fields: Record<string, unknown>): LoggedLine["fields"] {
  const plain: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (typeof value === "string" || typeof value === "boolean" || Number.isFinite(value)) {
      plain[key] = value as string | boolean | number;
    } else if (Error.isError(value)) {
      plain[key] = `${value.name}: ${value.message}`;
      if (value.stack !== undefined) plain["stack"] ??= value.stack;
    } else if (value !== undefined) plain[key] = fieldText(value);
  }
  return plain;
}

/** Replaces control characters, which could affect a terminal. */
function visible(stack: string): string {
  return stack.replaceAll(/(?!\n)\p{Cc}/gu, "?");
}

function fieldText(value: unknown): string {
  // Also true for an error of another context.
  if (Error.isError(value)) return JSON.stringify(`${value.name}: ${value.message}`);
  // Quoted, so that one field does not look like several.
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  if (typeof value === "bigint" || typeof value === "number") return String(value);
  return JSON.stringify(value) ?? String(value);
}

/** Replaces the code of a warning or error (`code`, or that of `error`) with the link of its page (DO3). */
export function withDocsLink(
  level: LogLevel,
  fields: Record<string, unknown>,
  link = (path: string): string => path,
): Record<string, unknown> {
  if ("docs" in fields || (level !== "error" && level !== "warn")) return fields;
  const { code, ...others } = fields;
  const docs = docsPath(code);
  if (docs !== null) return { ...others, docs: link(docs) };
  const ofError = docsPath(helpFields(fields["error"]).code);
  return ofError === null ? fields : { ...fields, docs: link(ofError) };
}

export interface StderrLogOptions {
  /** Whether debug messages are written. */
  readonly debug: boolean;
  /** Turns the path of a page, such as `/_/docs/limits`, into a link. Default: the path. */
  readonly docsLink?: (path: string) => string;
}

/** Returns a log that writes to standard error. */
export function stderrLog({ debug, docsLink }: StderrLogOptions): Log {
  const encoder = new TextEncoder();
  const receivers = new Set<LogReceiver>();
  const writeAt = (at: Date, [level, message, fields = {}]: Parameters<Log>) => {
    const linked = withDocsLink(level, fields, docsLink);
    const bytes = encoder.encode(logLine({ at, level, message, fields: linked }));
    try {
      for (let sent = 0; sent < bytes.length;) sent += Deno.stderr.writeSync(bytes.subarray(sent));
    } catch {
      // Standard error is closed or its disk is full: there is nowhere to report that.
    }
  };
  const isShown = (level: LogLevel) => debug || level !== "debug";
  const stderrOnly: Log = (...line) => {
    if (isShown(line[0])) writeAt(new Date(), line);
  };
  const write: Log = (level, message, fields = {}) => {
    if (!isShown(level)) return;
    const at = new Date();
    writeAt(at, [level, message, fields]);
    if (receivers.size > 0) {
      forwardLine(receivers, { at: at.getTime(), level, message, fields: plainFields(fields) });
    }
  };
  return Object.assign(write, { receivers, stderrOnly });
}

/** Passes a line to the receivers of a log. */
export function forwardLine(receivers: Iterable<LogReceiver>, line: LoggedLine): void {
  for (const receive of receivers) receive(line);
}
