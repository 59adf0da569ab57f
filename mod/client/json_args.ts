/** Copies arguments to JSON, so that later changes to the caller's object have no effect. */
import * as clientLimits from "./limits.ts";

/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/**
 * Copies arguments to plain JSON; `undefined` becomes an empty object. Properties that are `undefined` are omitted. Throws
 * `TypeError` with the path of a value that is not JSON, `RangeError` for arguments that are too deep or too large.
 */
export function jsonArgs(args: unknown = {}): JsonObject {
  if (!isPlainObject(args)) throw new TypeError("Cannot send arguments: expected an object");
  const copy = copyValue(args, { place: "args", depth: 0 }) as JsonObject;
  const chars = JSON.stringify(copy).length;
  if (chars > clientLimits.argsCharsMax) {
    throw new RangeError(
      `Cannot send arguments of ${chars} characters: the limit is ${clientLimits.argsCharsMax}`,
    );
  }
  return copy;
}

interface Position {
  readonly place: string;
  readonly depth: number;
}

function copyValue(value: unknown, at: Position): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw unsendable(String(value), at);
  }
  if (typeof value !== "object") throw unsendable(`a value of type ${typeof value}`, at);
  if (at.depth === clientLimits.argsDepthMax) {
    throw new RangeError(
      `Cannot send arguments nested deeper than ${clientLimits.argsDepthMax} levels, at ${at.place}`,
    );
  }
  const depth = at.depth + 1;
  if (Array.isArray(value)) {
    return Array.from(value, (element, i) => copyValue(element, { place: `${at.place}[${i}]`, depth }));
  }
  if (!isPlainObject(value)) {
    throw unsendable(`a ${value.constructor?.name ?? "object"}, which is not plain JSON,`, at);
  }
  const entries: [string, unknown][] = [];
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) entries.push([key, copyValue(member, { place: `${at.place}.${key}`, depth })]);
  }
  // `fromEntries` defines properties, so a key such as `__proto__` is plain data.
  return Object.fromEntries(entries);
}

function unsendable(what: string, at: Position): TypeError {
  return new TypeError(`Cannot send ${what} as JSON, at ${at.place}`);
}

function isPlainObject(value: unknown): value is JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Objects of another realm have another Object.prototype, whose prototype is also null.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
