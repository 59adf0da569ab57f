/** Calls that are refused before they reach a function, whoever makes them. */
import { failed, type Outcome } from "../functions/outcome.ts";
import { functionLimits } from "../limits.ts";

/**
 * The outcome of a call whose path or arguments no function can take, or `null` when it may run. `args` comes from
 * `JSON.parse`: numbers too large for a double have become infinite there.
 */
export function refuseCall(
  { udfPath, args }: { readonly udfPath: string; readonly args: Record<string, unknown> },
): Outcome | null {
  if (udfPath.length > functionLimits.udfPathCharsMax) {
    return failed("unknown_function", `Unknown function: the path has ${udfPath.length} characters`);
  }
  const fault = faultOf(args, { place: "args", depth: 1 });
  return fault === null ? null : failed("args", fault);
}

interface Place {
  readonly place: string;
  readonly depth: number;
}

function faultOf(value: unknown, { place, depth }: Place): string | null {
  if (typeof value === "number") return Number.isFinite(value) ? null : `${place}: number out of range`;
  if (typeof value !== "object" || value === null) return null;
  if (depth > functionLimits.argsDepthMax) {
    return `args: nested deeper than ${functionLimits.argsDepthMax} levels`;
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const fault = childFault(value[i], { depth, place: () => `${place}[${i}]` });
      if (fault !== null) return fault;
    }
    return null;
  }
  const fields = value as Record<string, unknown>;
  for (const key of Object.keys(fields)) {
    const fault = childFault(fields[key], { depth, place: () => `${place}.${key.slice(0, 64)}` });
    if (fault !== null) return fault;
  }
  return null;
}

/** Scalars, which most values are, cost no text for their place. */
function childFault(
  value: unknown,
  { depth, place }: { readonly depth: number; readonly place: () => string },
): string | null {
  switch (typeof value) {
    case "object":
      return value === null ? null : faultOf(value, { place: place(), depth: depth + 1 });
    case "number":
      return Number.isFinite(value) ? null : `${place()}: number out of range`;
    default:
      return null;
  }
}
