/** Converts thrown values to call errors: kind, message, and a stack with the author's files. */
import { EngineError, InvalidFieldsError } from "../../../engine/errors.ts";
import { userErrorKey } from "../../../errors.ts";
import { helpCodeOf } from "../../../explained.ts";
import { functionLimits } from "../../../limits.ts";
import type { CallError, CallErrorKind } from "../../outcome.ts";
import { importMessage } from "../app/import_message.ts";
import { asAuthored } from "../process/author_text.ts";
import { jsonText } from "./json_text.ts";
import { inspected } from "../ctx/log_lines.ts";

const { parse } = JSON;

/** A rejected call: unknown function or invalid arguments. */
export class RefusedCallError extends Error {
  readonly kind: Exclude<CallErrorKind, "user" | "internal">;
  /** A sentence for the author. */
  readonly hint: string | undefined;

  constructor(kind: RefusedCallError["kind"], message: string, hint?: string) {
    super(message);
    this.name = "RefusedCallError";
    this.kind = kind;
    this.hint = hint;
  }
}

export class CalledFunctionError extends Error {
  /** Frames in the author's files: those of the called function, then those of its caller. */
  readonly #frames: string;
  readonly code: string | undefined;

  constructor(error: Pick<CallError, "message" | "stack" | "code">) {
    super(error.message);
    this.name = "CalledFunctionError";
    this.code = error.code;
    this.#frames = [error.stack ?? "", cleanStack(this.stack)].filter((frames) => frames !== "").join("\n");
    if (error.stack !== undefined) this.stack = error.stack;
  }

  static framesOf(error: CalledFunctionError): string {
    return error.#frames;
  }
}

let functionsUrl = "";

/** Sets the functions folder. Stack traces name files relative to it, or in full if it is empty. */
export function setFunctionsUrl(url: string): void {
  functionsUrl = url === "" || url.endsWith("/") ? url : `${url}/`;
}

/** Converts a thrown value to a call error. */
export function callError(thrown: unknown): CallError {
  try {
    return convert(thrown);
  } catch {
    // Reading the value ran code of the app that threw again.
    return { kind: "internal", message: "An error was thrown that cannot be read", data: null };
  }
}

function convert(thrown: unknown): CallError {
  if (
    typeof thrown === "object" && thrown !== null &&
    (thrown as Record<symbol, unknown>)[userErrorKey] === true
  ) {
    return userError(thrown as { code?: unknown; message?: unknown; data?: unknown; stack?: unknown });
  }
  if (thrown instanceof RefusedCallError) {
    const { kind, hint } = thrown;
    return { kind, message: cut(thrown.message), data: null, ...(hint !== undefined && { hint: cut(hint) }) };
  }
  if (!(thrown instanceof Error)) {
    return internal(`A value was thrown that is not an Error: ${inspected(thrown)}`, "");
  }
  const message = importMessage(`${thrown.message}`);
  const stack = thrown instanceof CalledFunctionError
    ? CalledFunctionError.framesOf(thrown)
    : cleanStack(thrown.stack);
  const code = thrown instanceof CalledFunctionError ? thrown.code : codeOf(thrown);
  return {
    ...internal(message === "" ? `${thrown.name}` : message, stack),
    ...(code !== undefined && { code }),
  };
}

/** The code of an error of the service; errors of the app have none. */
function codeOf(error: Error): string | undefined {
  if (error instanceof EngineError) return error.code;
  return error instanceof InvalidFieldsError ? "not_storable" : helpCodeOf(error);
}

function userError(error: { code?: unknown; message?: unknown; data?: unknown; stack?: unknown }): CallError {
  const { code } = error;
  const stack = cleanStack(error.stack);
  if (typeof code !== "string" || code === "") {
    return internal(`The code of a UserError must be a string, not ${inspected(code)}`, stack);
  }
  let data: unknown;
  try {
    const text = jsonText(error.data, "The data of a UserError");
    if (text.length > functionLimits.resultCharsMax) {
      return internal(
        `The data of a UserError has ${text.length} characters, more than the limit of ${functionLimits.resultCharsMax}`,
        stack,
      );
    }
    data = parse(text);
  } catch (fault) {
    return internal(fault instanceof Error ? fault.message : inspected(fault), stack);
  }
  return {
    kind: "user",
    message: cut(`${error.message}`),
    data: { code: cut(code), data },
    ...(stack === "" ? {} : { stack }),
  };
}

function internal(message: string, stack: string): CallError {
  return {
    kind: "internal",
    message: cut(asAuthored(message)),
    data: null,
    ...(stack === "" ? {} : { stack: cut(stack) }),
  };
}

/** Keeps the frames in the author's files, each as `at name (messages.ts:12:5)`. */
export function cleanStack(stack: unknown): string {
  if (typeof stack !== "string") return "";
  const frames: string[] = [];
  for (const line of stack.slice(0, functionLimits.errorCharsMax).split("\n")) {
    const at = line.indexOf(functionsUrl);
    if (at < 0 || !/^\s+at /.test(line)) continue;
    frames.push(`${line.slice(0, at)}${line.slice(at + functionsUrl.length)}`);
  }
  return frames.join("\n");
}

function cut(text: string): string {
  const max = functionLimits.errorCharsMax;
  return text.length > max ? `${text.slice(0, max - 3)}...` : text;
}

/** Whether a stack frame is in one of the app's own files. */
export function isAuthored(frame: string): boolean {
  return functionsUrl !== "" && frame.includes(functionsUrl) && !frame.includes("/node_modules/");
}

/** Replaces file URLs by paths relative to the functions folder. */
export function relativeToFunctions(text: string): string {
  return functionsUrl === "" ? text : text.replaceAll(functionsUrl, "");
}
