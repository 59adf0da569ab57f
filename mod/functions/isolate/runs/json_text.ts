/** Serializes values returned by app code, and reports where they are not JSON. */
import { documentLimits, functionLimits } from "../../../limits.ts";
import { pathText } from "../../api/zod_issues.ts";

const { stringify } = JSON;
const { isArray } = Array;
const { getPrototypeOf, hasOwn } = Object;
const objectPrototype = Object.prototype;

/** Results wrap documents, so they may be deeper than one. */
const DEPTH_MAX = 2 * documentLimits.valueDepthMax;

/** Maximum objects and arrays in a value: each takes at least two characters and a comma. */
const OBJECTS_MAX = functionLimits.resultCharsMax / 3;

/** Thrown for a value that is not JSON. The message contains its path. */
export class NotJsonError extends TypeError {
  constructor(path: string, problem: string) {
    super(`${path} ${problem}`);
    this.name = "NotJsonError";
  }
}

/** Implemented by objects with a better hint than "an instance of X". */
export const notJsonHint: unique symbol = Symbol("syncline.notJsonHint");

/** Objects and arrays visited so far. Shared references can multiply without bound. */
let objects = 0;

interface Fault {
  readonly path: PropertyKey[];
  readonly problem: string;
}

/** Serializes a value; `undefined` becomes `null` or is omitted. @throws NotJsonError that begins with `name`. */
export function jsonText(value: unknown, name: string): string {
  if (value === undefined || value === null) return "null";
  objects = 0;
  const fault = faultOf(value, 0);
  if (fault !== null) {
    const path = pathText(fault.path.reverse(), "");
    throw new NotJsonError(path === "" ? name : `${name} at ${path}`, fault.problem);
  }
  const text: unknown = stringify(value);
  // A hidden toJSON, or a getter with changing results.
  if (typeof text !== "string") throw new NotJsonError(name, "turns itself into nothing: use a plain object");
  return text;
}

/** Returns what is wrong with a value, or `null`. The path is built while unwinding, so valid values cost nothing. */
function faultOf(value: unknown, depth: number): Fault | null {
  switch (typeof value) {
    case "string":
    case "boolean":
      return null;
    case "number":
      return value - value === 0
        ? null
        : { path: [], problem: `is ${value}, which JSON cannot hold: use null` };
    case "object":
      return value === null ? null : objectFault(value, depth);
    case "undefined":
      return { path: [], problem: "is undefined: use null, or leave it out" };
    case "bigint":
      return { path: [], problem: "is a BigInt: use a number, or a string for values beyond 2^53" };
    case "function":
      return { path: [], problem: "is a function: only data can be passed on" };
    default:
      return { path: [], problem: "is a symbol: use a string" };
  }
}

function objectFault(value: object, depth: number): Fault | null {
  if (depth >= DEPTH_MAX) {
    return { path: [], problem: `is nested deeper than ${DEPTH_MAX} levels, or contains itself` };
  }
  if (++objects > OBJECTS_MAX) {
    return {
      path: [],
      problem: "makes it longer than any result may be: does it hold the same object many times?",
    };
  }
  if (isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const fault = faultOf(value[index], depth + 1);
      if (fault !== null) return within(index, fault);
    }
    return null;
  }
  const prototype: unknown = getPrototypeOf(value);
  if (prototype !== objectPrototype && prototype !== null) return { path: [], problem: classProblem(value) };
  // Such a loop makes no list of keys. Fields that app code has added to `Object.prototype` are not part of the value.
  for (const key in value) {
    const inner: unknown = (value as Record<string, unknown>)[key];
    if (inner === undefined) continue;
    const fault = faultOf(inner, depth + 1);
    if (fault !== null && hasOwn(value, key)) return within(key, fault);
  }
  return null;
}

/** Cycles reach the depth limit, so the path is truncated. */
function within(key: PropertyKey, fault: Fault): Fault {
  if (fault.path.length < 8) fault.path.push(key);
  return fault;
}

function classProblem(value: object): string {
  if (value instanceof Promise) return "is a promise: await it";
  if (value instanceof Date) return "is a Date: use date.getTime() or date.toISOString()";
  if (value instanceof Map) return "is a Map: use Object.fromEntries(map), or an array";
  if (value instanceof Set) return "is a Set: use [...set]";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return "is binary data: use base64 text";
  const hint: unknown = (value as { readonly [notJsonHint]?: unknown })[notJsonHint];
  if (typeof hint === "string") return hint;
  const maker: unknown = value.constructor;
  const name = typeof maker === "function" && maker.name !== "" ? maker.name : "a class";
  return `is an instance of ${name}: use a plain object`;
}
