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
  const place = /(?:\(|at (?:async )?)([^()]+:\d+:\d+)\)?$/.exec(frames[0] ?? "")?.[1] ?? name;
  const trace = frames.length > 1 ? `\n${frames.join("\n")}` : "";
  return `${place}: ${message}${hint(thrown)}${trace}`;
}

function hint(error: Error): string {
  const { message, stack = "" } = error;
  // In an app's own tests. In a bundle such an export is undefined.
  if (error instanceof ReferenceError && /before initialization/.test(message)) {
    return " (modules that import each other in a circle cannot use each other's exports while they load: move what both need into a third module)";
  }
  // The frame that threw, if it is in a package.
  const place = /^\s+at .*?(app:\/\/\/.+:\d+:\d+)/m.exec(stack)?.[1] ?? "";
  return place.includes("/node_modules/") && !message.includes("/node_modules/") ? ` (in ${place})` : "";
}
