/** Parsed documents and access to their values by path. */
import type { Value } from "../types.ts";

/** An immutable parsed document. */
export interface StoredFields {
  readonly _id: string;
  readonly _creationTime: number;
  readonly [field: string]: Value;
}

/** Field names; the dots in a definition (`author.name`) separate them. */
export type Path = readonly string[];

export function pathOf(field: string): Path {
  return field.split(".");
}

const { hasOwn } = Object;

/** Returns the value at a path, or `undefined`. Paths lead into objects, not into arrays. */
export function valueAt(doc: StoredFields, path: Path): Value | undefined {
  let value: unknown = doc;
  for (const name of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !hasOwn(value, name)) {
      return undefined;
    }
    value = (value as Record<string, unknown>)[name];
  }
  // Everything inside a stored document is a value.
  return value as Value | undefined;
}

export function fieldsOf(doc: StoredFields): Record<string, Value> {
  const { _id, _creationTime, ...fields } = doc;
  return fields;
}
