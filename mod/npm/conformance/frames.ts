/** Patterns of recorded frames: strings after `$` are variables, and keys that a pattern does not name may have any value. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type Variables = Map<string, Json>;

/** Returns why the value differs from the pattern, or `null`. Binds variables that have no value yet. */
export function mismatch(
  pattern: Json,
  value: Json | undefined,
  variables: Variables,
  at = "",
): string | null {
  if (value === undefined) return `${at || "it"} is missing`;
  if (typeof pattern === "string" && pattern.startsWith("$")) {
    const known = variables.get(pattern);
    if (known !== undefined) return mismatch(known, value, variables, at);
    variables.set(pattern, value);
    return null;
  }
  if (Array.isArray(pattern)) {
    if (!Array.isArray(value) || value.length !== pattern.length) return differs(pattern, value, at);
    return inAnyOrder(pattern, value, variables) ? null : differs(pattern, value, at);
  }
  if (typeof pattern === "object" && pattern !== null) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return differs(pattern, value, at);
    }
    const fields = value as Readonly<Record<string, Json>>;
    for (const [key, part] of Object.entries(pattern as Readonly<Record<string, Json>>)) {
      const reason = mismatch(part, fields[key], variables, at === "" ? key : `${at}.${key}`);
      if (reason !== null) return reason;
    }
    return null;
  }
  return pattern === value ? null : differs(pattern, value, at);
}

/** Whether each pattern matches another one of the values. Lists are short. */
function inAnyOrder(patterns: readonly Json[], values: readonly Json[], variables: Variables): boolean {
  const [first, ...rest] = patterns;
  if (first === undefined) return true;
  return values.some((value, i) => {
    const tried = new Map(variables);
    if (mismatch(first, value, tried) !== null || !inAnyOrder(rest, values.toSpliced(i, 1), tried)) {
      return false;
    }
    for (const [name, bound] of tried) variables.set(name, bound);
    return true;
  });
}

function differs(pattern: Json, value: Json, at: string): string {
  return `${at || "it"} is ${JSON.stringify(value)} instead of ${JSON.stringify(pattern)}`;
}

/** Returns the frame with its variables replaced. */
export function filled(frame: Json, variables: Variables): Json {
  if (typeof frame === "string" && frame.startsWith("$")) {
    const value = variables.get(frame);
    if (value === undefined) throw new TypeError(`The variable ${frame} has no value`);
    return value;
  }
  if (Array.isArray(frame)) return frame.map((part) => filled(part, variables));
  if (typeof frame !== "object" || frame === null) return frame;
  return Object.fromEntries(Object.entries(frame).map(([key, part]) => [key, filled(part, variables)]));
}
