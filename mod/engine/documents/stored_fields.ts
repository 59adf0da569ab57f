/** A document as the engine's own code reads it, and its values by path. */
import type { Value } from "../types.ts";

/** A parsed document, not to be changed. */
export interface StoredFields {
  readonly _id: string;
  readonly _creationTime: number;
  readonly [field: string]: Value;
}

/** The names that lead to a value; dots in a field of a definition reach into objects. */
export type Path = readonly string[];

/** The path of a field as definitions write it. */
export function pathOf(field: string): Path {
  return field.split(".");
}

const { hasOwn } = Object;

/** The value at a path, or `undefined` where there is none. Paths reach into objects, not into arrays. */
export function valueAt(doc: StoredFields, path: Path): Value | undefined {
  let value: unknown = doc;
  for (const name of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !hasOwn(value, name)) {
      return undefined;
    }
    value = (value as Record<string, unknown>)[name];
  }
  // What lies inside a stored document is a stored value.
  return value as Value | undefined;
}

/** A document's fields without `_id` and `_creationTime`. */
export function fieldsOf(doc: StoredFields): Record<string, Value> {
  const { _id, _creationTime, ...fields } = doc;
  return fields;
}
