/** Why a module could not be loaded, in words that name file, line and what to do. */
import { functionLimits } from "../../limits.ts";
import { cleanStack, relativeToFunctions } from "./call_errors.ts";
import { inspected } from "./log_lines.ts";

/** One message for an error that importing `name` ended with: `messages.ts:3:7: what is wrong`, then where it came from. */
export function loadErrorMessage(name: string, thrown: unknown): string {
  if (!(thrown instanceof Error)) return `${name} threw a value that is not an Error: ${inspected(thrown)}`;
  // The runtime ends its own messages with the places that imported the file: they are in the stack, too.
  const lines = relativeToFunctions(plainMessage(thrown)).slice(0, functionLimits.errorCharsMax).split("\n");
  const message = lines.filter((line) => !/^\s+(at|hint:) /.test(line)).join("\n");
  const frames = [...new Set(cleanStack(thrown.stack).split("\n"))].filter((frame) => frame !== "");
  const place = /\(?([^\s()]+:\d+:\d+)\)?$/.exec(frames[0] ?? "")?.[1] ?? name;
  const trace = frames.length > 1 ? `\n${frames.join("\n")}` : "";
  return `${place}: ${message}${hint(thrown)}${trace}`;
}

/** The runtime's answer to a package that the isolates' lock file does not have is a diff of that file. */
function plainMessage({ message }: Error): string {
  if (!message.startsWith("The lockfile is out of date")) return message;
  const name = /\+\s+"((?:npm|jsr):[^"]+)"/.exec(message)?.[1] ?? "another package";
  return `cannot import ${name}: functions can import "syncline/server", "zod" and files by relative path`;
}

function hint(error: Error): string {
  if (error instanceof ReferenceError && /before initialization/.test(error.message)) {
    return " (modules that import each other in a circle cannot use each other's exports while they load: move what both need into a third module)";
  }
  if (/not a dependency and not in import map/.test(error.message)) {
    return ' (functions can import "syncline/server", "zod" and files by relative path)';
  }
  return "";
}
