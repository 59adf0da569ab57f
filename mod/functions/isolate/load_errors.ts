/** Why a module could not be loaded, in words that name file, line and what to do. */
import { functionLimits } from "../../limits.ts";
import { cleanStack, relativeToFunctions } from "./call_errors.ts";
import { inspected } from "./log_lines.ts";

/** One message for an error that importing `name` ended with. */
export function loadErrorMessage(name: string, thrown: unknown): string {
  if (!(thrown instanceof Error)) return `${name} threw a value that is not an Error: ${inspected(thrown)}`;
  const message = relativeToFunctions(plainMessage(thrown)).slice(0, functionLimits.errorCharsMax);
  const stack = cleanStack(thrown.stack);
  const place = /\(?([^\s()]+:\d+:\d+)\)?$/m.exec(stack)?.[1];
  const start = place === undefined ? name : place;
  const told = message.includes(start) ? message : `${start}: ${message}`;
  return `${told}${hint(thrown)}${stack === "" ? "" : `\n${stack}`}`;
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
