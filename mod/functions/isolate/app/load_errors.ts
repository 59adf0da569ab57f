/** Explains why a module could not be loaded, with file, line and advice. */
import { functionLimits } from "../../../limits.ts";
import { cleanStack, relativeToFunctions } from "../runs/call_errors.ts";
import { importMessage } from "./import_message.ts";
import { inspected } from "../ctx/log_lines.ts";

/** Formats an import error of `name`: `messages.ts:3:7: message`, then the stack. */
export function loadErrorMessage(name: string, thrown: unknown): string {
  if (!(thrown instanceof Error)) return `${name} threw a value that is not an Error: ${inspected(thrown)}`;
  // Messages of the runtime end with the importing locations, which are in the stack too.
  const lines = relativeToFunctions(importMessage(thrown.message)).slice(0, functionLimits.errorCharsMax)
    .split("\n");
  const message = lines.filter((line) => !/^\s+(at|hint:) /.test(line)).join("\n");
  const frames = [...new Set(cleanStack(thrown.stack).split("\n"))].filter((frame) => frame !== "");
  const place = /\(?([^\s()]+:\d+:\d+)\)?$/.exec(frames[0] ?? "")?.[1] ?? name;
  const trace = frames.length > 1 ? `\n${frames.join("\n")}` : "";
  return `${place}: ${message}${hint(thrown)}${trace}`;
}

function hint(error: Error): string {
  const { message, stack = "" } = error;
  if (error instanceof ReferenceError && /before initialization/.test(message)) {
    return " (modules that import each other in a circle cannot use each other's exports while they load: move what both need into a third module)";
  }
  if (/^The requested module '[^./][^']*' does not provide an export named/.test(message)) {
    return " (a CommonJS package that does not name its exports is imported as a whole: import name from ...)";
  }
  if (/^Module not found "file:/.test(relativeToFunctions(message)) && !message.includes("/node_modules/")) {
    return " (only what lies in the functions folder is part of the app, and packages that are installed beside or above it)";
  }
  // Without a frame in the author's files, the location in the package.
  const place = cleanStack(stack) === ""
    ? /file:\/\/\S+\/node_modules\/\S+:\d+:\d+/.exec(stack)?.[0]
    : undefined;
  return place === undefined || message.includes("/node_modules/") ? "" : ` (in ${place})`;
}
