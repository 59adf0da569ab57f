/**
 * Patterns of frames and events. Strings after `$` are variables, a key that ends in `?` is optional, and frames, modifications
 * and events may have further keys. Modifications may be in any order. Arguments and results have to be equal.
 */
import { isDeepStrictEqual } from "node:util";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type Variables = Map<string, Json>;

type Fields = Readonly<Record<string, Json>>;

/** Returns why the frame or event differs from the pattern, or `null`. Binds variables that have no value yet. */
export function mismatch(pattern: Json, value: Json, variables: Variables, at = ""): string | null {
  if (!isFields(pattern) || !isFields(value)) return differs(pattern, value, at);
  for (const [name, part] of Object.entries(pattern)) {
    const key = name.replace(/\?$/, "");
    const field = value[key];
    if (field === undefined && key !== name) continue;
    const reason = fieldMismatch(part, field, variables, at === "" ? key : `${at}.${key}`);
    if (reason !== null) return reason;
  }
  return null;
}

function fieldMismatch(
  pattern: Json,
  value: Json | undefined,
  variables: Variables,
  at: string,
): string | null {
  if (value === undefined) return `${at} is missing`;
  if (at === "modifications") return listMismatch(pattern as readonly Json[], value, variables, at);
  if (typeof pattern === "string" && pattern.startsWith("$") && !variables.has(pattern)) {
    variables.set(pattern, value);
    return null;
  }
  const expected = filled(pattern, variables);
  return isDeepStrictEqual(expected, value) ? null : differs(expected, value, at);
}

/** Returns why the frames, events or modifications differ from the patterns in every order, or `null`. */
export function listMismatch(
  patterns: readonly Json[],
  value: Json,
  variables: Variables,
  at = "",
): string | null {
  const isList = Array.isArray(value) && value.length === patterns.length;
  return isList && inAnyOrder(patterns, value, variables) ? null : differs(patterns, value, at);
}

/** Whether each pattern matches another one of the values. Lists are short. */
function inAnyOrder(patterns: readonly Json[], values: readonly Json[], variables: Variables): boolean {
  const [first, ...rest] = patterns;
  if (first === undefined) return true;
  return values.some((value, i) => {
    const tried = new Map(variables);
    const others = values.filter((_, at) => at !== i);
    if (mismatch(first, value, tried) !== null || !inAnyOrder(rest, others, tried)) return false;
    for (const [name, bound] of tried) variables.set(name, bound);
    return true;
  });
}

function isFields(value: Json): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
