/** Validates calls before they reach a function. */
import { failed, type Outcome } from "../functions/outcome.ts";
import { functionLimits } from "../limits.ts";

/** Returns the error of an invalid call, or `null`. `JSON.parse` of `args` turns too large numbers into infinity. */
export function refuseCall(
  { udfPath, args }: { readonly udfPath: string; readonly args: Record<string, unknown> },
): Outcome | null {
  if (udfPath.length > functionLimits.udfPathCharsMax) {
    return failed("unknown_function", `Unknown function: the path has ${udfPath.length} characters`);
  }
  const size: Size = { charsMax: 0 };
  const fault = faultOf(args, { path: "args", depth: 1, size }) ?? sizeFault(args, size);
  return fault === null ? null : failed("args", fault);
}

/** Upper bound for the length of the arguments as JSON. */
interface Size {
  charsMax: number;
}

interface Location {
  readonly path: string;
  readonly depth: number;
  readonly size: Size;
}

/** Characters of the longest number, `-1.2345678901234567e-308`, and its separator. */
const NUMBER_CHARS_MAX = 25;
/** A control character is escaped as `\u0000`. */
const ESCAPED_CHARS_MAX = 6;

/** Serializes the arguments only if the upper bound exceeds the limit. */
function sizeFault(args: Record<string, unknown>, { charsMax }: Size): string | null {
  if (charsMax <= functionLimits.argsCharsMax) return null;
  const { length } = JSON.stringify(args);
  if (length <= functionLimits.argsCharsMax) return null;
  return `args: ${length} characters, the limit is ${functionLimits.argsCharsMax}`;
}

function faultOf(value: object, { path, depth, size }: Location): string | null {
  if (depth > functionLimits.argsDepthMax) {
    return `args: nested deeper than ${functionLimits.argsDepthMax} levels`;
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const fault = childFault(value[i], { depth, size, path: () => `${path}[${i}]` });
      if (fault !== null) return fault;
    }
    return null;
  }
  const fields = value as Record<string, unknown>;
  for (const key of Object.keys(fields)) {
    size.charsMax += key.length * ESCAPED_CHARS_MAX + 4;
    const fault = childFault(fields[key], { depth, size, path: () => `${path}.${key.slice(0, 64)}` });
    if (fault !== null) return fault;
  }
  return null;
}

/** Takes `path` as a function: most values are valid scalars and need no path. */
function childFault(
  value: unknown,
  { depth, size, path }: { readonly depth: number; readonly size: Size; readonly path: () => string },
): string | null {
  size.charsMax += NUMBER_CHARS_MAX;
  switch (typeof value) {
    case "object":
      return value === null ? null : faultOf(value, { path: path(), depth: depth + 1, size });
    case "number":
      return Number.isFinite(value) ? null : `${path()}: number out of range`;
    case "string":
      size.charsMax += value.length * ESCAPED_CHARS_MAX;
      return null;
    default:
      return null;
  }
}
