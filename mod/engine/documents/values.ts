/** Validates values that an app stores and copies them. Errors name the field and the solution. */
import { documentLimits } from "../../limits.ts";
import { EngineError } from "../errors.ts";
import type { Value } from "../types.ts";

const { isArray } = Array;
const { keys: keysOf, getPrototypeOf, defineProperty } = Object;
const objectPrototype = Object.prototype;

/** The position in a document and the size so far. */
interface Walk {
  readonly path: (string | number)[];
  /** Lower bound of the JSON length, which also bounds shared references. */
  chars: number;
  /** Operation for error messages; defaults to storing the document. */
  readonly use?: string;
}

/** Copies `fields` without `undefined`. `reservedNames` refuses `_` and `$`. Throws an `EngineError` with the path. */
export function storableFields(
  fields: Record<string, unknown>,
  options: { readonly reservedNames: boolean },
): Record<string, Value> {
  if (typeof fields !== "object" || fields === null || isArray(fields)) {
    throw new EngineError("not_storable", "Cannot store this document: its fields must be a plain object");
  }
  const walk: Walk = { path: [], chars: 0 };
  if (options.reservedNames) {
    for (const name of keysOf(fields)) {
      const first = name.charCodeAt(0);
      if (first === 0x5f || first === 0x24) {
        throw new EngineError(
          "not_storable",
          `Cannot store field "${shown(name)}": names that begin with "_" or "$" belong to the service`,
        );
      }
    }
  }
  return copyObject(fields, walk);
}

/** Throws an `EngineError` for a value that cannot be stored. `use`: the operation, such as `compare with it`. */
export function checkStorable(value: object, use: string): void {
  copyValue(value, { path: [], chars: 0, use });
}

/** Returns `undefined` unchanged: objects drop it, arrays refuse it. */
function copyValue(value: unknown, walk: Walk): Value | undefined {
  switch (typeof value) {
    case "string":
      walk.chars += value.length + 2;
      if (walk.chars > documentLimits.documentCharsMax) throw tooLong(walk);
      return value;
    case "number":
      walk.chars += 1;
      // True for NaN and the infinities only.
      if (value - value !== 0) {
        throw refuse(walk, `${value} is not a JSON number`, "use null, or leave the field out");
      }
      return value + 0;
    case "boolean":
      walk.chars += 4;
      return value;
    case "undefined":
      return undefined;
    case "object":
      if (value === null) {
        walk.chars += 4;
        return null;
      }
      if (walk.path.length >= documentLimits.valueDepthMax) throw tooDeep(value, walk);
      return isArray(value) ? copyArray(value, walk) : copyObject(value, walk);
    case "bigint":
      throw refuse(walk, "it is a BigInt", "use a number, or a string for values beyond 2^53");
    case "function":
      throw refuse(walk, "it is a function", "store data only");
    case "symbol":
      throw refuse(walk, "it is a symbol", "use a string");
    default:
      throw refuse(walk, "it is not a JSON value", "store data only");
  }
}

function copyArray(value: readonly unknown[], walk: Walk): Value[] {
  const { length } = value;
  if (length > documentLimits.arrayElementsMax) {
    throw refuse(
      walk,
      `the array has ${length} elements and the limit is ${documentLimits.arrayElementsMax}`,
      "store the elements as documents of their own",
    );
  }
  walk.chars += length + 2;
  if (walk.chars > documentLimits.documentCharsMax) throw tooLong(walk);
  const copy: Value[] = new Array(length);
  const { path } = walk;
  const depth = path.length;
  for (let index = 0; index < length; index++) {
    path[depth] = index;
    const element = copyValue(value[index], walk);
    if (element === undefined) {
      throw refuse(walk, "it is undefined", "use null, or leave the element out of the array");
    }
    copy[index] = element;
  }
  path.length = depth;
  return copy;
}

function copyObject(value: object, walk: Walk): Record<string, Value> {
  const prototype = getPrototypeOf(value);
  if (prototype !== objectPrototype && prototype !== null) throw notPlain(value, walk);
  const names = keysOf(value);
  if (names.length > documentLimits.objectFieldsMax) {
    throw refuse(
      walk,
      `the object has ${names.length} fields and the limit is ${documentLimits.objectFieldsMax}`,
      "store the entries as documents of their own",
    );
  }
  const copy: Record<string, Value> = {};
  const { path } = walk;
  const depth = path.length;
  for (const name of names) {
    if (name.length > documentLimits.fieldNameCharsMax) {
      throw refuse(
        walk,
        `the field name "${
          shown(name)
        }" has ${name.length} characters and the limit is ${documentLimits.fieldNameCharsMax}`,
        "use a shorter name",
      );
    }
    path[depth] = name;
    walk.chars += name.length + 4;
    const field = copyValue((value as Record<string, unknown>)[name], walk);
    if (field === undefined) continue;
    if (name === "__proto__") {
      defineProperty(copy, name, { value: field, enumerable: true, configurable: true, writable: true });
    } else {
      copy[name] = field;
    }
  }
  path.length = depth;
  return copy;
}

function notPlain(value: object, walk: Walk): EngineError {
  if (value instanceof Date) return refuse(walk, "it is a Date", "use date.getTime(), a number");
  if (value instanceof Map) return refuse(walk, "it is a Map", "use Object.fromEntries(map), or an array");
  if (value instanceof Set) return refuse(walk, "it is a Set", "use [...set], an array");
  if (value instanceof Promise) return refuse(walk, "it is a promise", "await it first");
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return refuse(walk, "it is binary data", "store it as a file, or as base64 text");
  }
  const maker: unknown = (value as { constructor?: unknown }).constructor;
  const name = typeof maker === "function" && maker.name !== "" ? maker.name : "a class";
  return refuse(walk, `it is an instance of ${name}`, "store a plain object");
}

function tooDeep(value: object, walk: Walk): EngineError {
  return hasCycle(value, new Set())
    ? refuse(walk, "it contains itself", "store an id instead of the object")
    : refuse(
      walk,
      `it is nested deeper than ${documentLimits.valueDepthMax} levels`,
      "store the inner parts as documents of their own",
    );
}

/** Depth of the cycle search: getters can produce endless values. */
const CYCLE_LEVELS_MAX = 1024;

/** Follows one path, which is cheap and distinguishes a cycle from deep nesting. */
function hasCycle(value: unknown, ancestors: Set<object>): boolean {
  let current: unknown = value;
  while (typeof current === "object" && current !== null && ancestors.size < CYCLE_LEVELS_MAX) {
    if (ancestors.has(current)) return true;
    ancestors.add(current);
    current = Object.values(current).find((inner) => typeof inner === "object" && inner !== null);
  }
  return false;
}

function tooLong(walk: Walk): EngineError {
  return refuse(
    walk,
    `it is longer than ${documentLimits.documentCharsMax} characters of JSON`,
    "split it, or store it as a file",
  );
}

function refuse(walk: Walk, what: string, advice: string): EngineError {
  return new EngineError(
    "not_storable",
    `Cannot ${walk.use ?? `store ${locationOf(walk)}`}: ${what}; ${advice}`,
  );
}

/** Returns `field "a.b[3]"`, or `this document` at the top. */
function locationOf({ path }: Walk): string {
  if (path.length === 0) return "this document";
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? shown(part) : `.${shown(part)}`;
  }
  return `field "${text}"`;
}

/** Shortens a name for a message. */
function shown(name: string): string {
  return name.length <= 80 ? name : `${name.slice(0, 80)}...`;
}
