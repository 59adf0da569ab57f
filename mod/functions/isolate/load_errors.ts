/** Why a module could not be loaded, in words that name file, line and what to do. */
import { functionLimits } from "../../limits.ts";
import { cleanStack, relativeToFunctions } from "./call_errors.ts";
import { inspected } from "./log_lines.ts";

/** Why imports fail, by specifier; set before the app is loaded. */
let refusals: Readonly<Record<string, string>> = {};

/** Lets messages of failed imports say more: `reasons` by specifier. */
export function explainImports(reasons: Readonly<Record<string, string>>): void {
  refusals = reasons;
}

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

const NOT_MAPPED = /^Import "([^"]*)" not a dependency(?: and not in import map from "([^"]*)")?/;
const OTHER_REGISTRY =
  /^(?:Failed loading \S+ for package "|The lockfile is out of date[^]*\+\s+"(?:npm|jsr):)((?:@[^"@\s/]+\/)?[^"@\s/]+)/;

/** The runtime's own messages on imports do not know how functions come by a package. */
function plainMessage({ message }: Error): string {
  const [, specifier, from = ""] = NOT_MAPPED.exec(message) ?? [];
  if (specifier !== undefined) {
    const importer = from.includes("/node_modules/") ? `, which ${from} imports` : "";
    if (Object.hasOwn(refusals, specifier)) {
      return `cannot import "${specifier}"${importer}: ${refusals[specifier]}`;
    }
    return `cannot find "${specifier}"${importer}: packages are installed in the app's folder, beside or above the functions folder (${
      install(specifier)
    }); the app's own files are imported by relative path`;
  }
  const [, name] = OTHER_REGISTRY.exec(message) ?? [];
  return name === undefined
    ? message
    : `cannot import an "npm:" or "jsr:" address: install the package in the app's folder (${
      install(name)
    }) and import it by its name`;
}

function install(specifier: string): string {
  const [first = "", second = ""] = specifier.split("/");
  return `npm install ${first.startsWith("@") ? `${first}/${second}` : first}`;
}

function hint(error: Error): string {
  const { message, stack = "" } = error;
  if (error instanceof ReferenceError && /before initialization/.test(message)) {
    return " (modules that import each other in a circle cannot use each other's exports while they load: move what both need into a third module)";
  }
  if (/^The requested module '[^./][^']*' does not provide an export named/.test(message)) {
    return " (a CommonJS package that does not name its exports is imported as a whole: import name from ...)";
  }
  // Without a frame in the author's files, at least the package's own place.
  const place = cleanStack(stack) === ""
    ? /file:\/\/\S+\/node_modules\/\S+:\d+:\d+/.exec(stack)?.[0]
    : undefined;
  return place === undefined || message.includes("/node_modules/") ? "" : ` (in ${place})`;
}
