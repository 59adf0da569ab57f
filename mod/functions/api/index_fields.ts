/** Checks that the fields of an index can exist. A typo in plain JavaScript would otherwise silently index nothing. */
import { z } from "zod";
import type { TableDefinition } from "../../engine/types.ts";

/** Schemas visited for one path; more complex schemas are not checked. */
const SCHEMAS_MAX = 1_000;
/** Maximum number of fields listed in an error. */
const FIELDS_SHOWN = 30;

/** Types without fields that an index can reach. */
const withoutFields: ReadonlySet<string> = new Set([
  "string",
  "number",
  "int",
  "boolean",
  "null",
  "undefined",
  "never",
  "nan",
  "template_literal",
  "enum",
  "array",
  "tuple",
]);
/** Wrapper types, which have the fields of their inner schema. */
const wrappers: ReadonlySet<string> = new Set([
  "optional",
  "nullable",
  "nonoptional",
  "readonly",
  "default",
  "prefault",
]);

type Indexes = Pick<TableDefinition, "indexes" | "searchIndexes" | "vectorIndexes" | "aggregates">;
type Schema = z.core.$ZodType;
/** A definition of any type, with the properties used here. */
type Definition = z.core.$ZodTypeDef & {
  readonly shape?: Readonly<Record<string, Schema>>;
  readonly catchall?: Schema;
  readonly options?: readonly Schema[];
  readonly innerType?: Schema;
  readonly valueType?: Schema;
  readonly left?: Schema;
  readonly right?: Schema;
  readonly out?: Schema;
  readonly getter?: () => Schema;
  readonly values?: readonly unknown[];
};

/** Throws for an index on a field that no document of the table can have. Uncertain cases pass. */
export function checkIndexFields(table: string, schema: Schema, indexes: Indexes): void {
  for (const { name, fields } of indexes.indexes) check("Index", name, fields);
  for (const { name, searchField, filterFields } of indexes.searchIndexes) {
    check("Search index", name, [searchField, ...filterFields]);
  }
  for (const { name, vectorField, filterFields } of indexes.vectorIndexes) {
    check("Vector index", name, [vectorField, ...filterFields]);
  }
  for (const { name, by, sum } of indexes.aggregates ?? []) check("Aggregate", name, [...by, ...sum]);

  function check(what: string, index: string, fields: readonly unknown[]): void {
    for (const field of fields) {
      if (typeof field !== "string" || field === "_id" || field === "_creationTime") continue;
      const path = field.split(".");
      if (!surelyLacks(schema, path)) continue;
      throw new TypeError(
        `${what} "${index}" of table "${table}" names the unknown field "${field}"; known fields: ${
          fieldsBeside(schema, path)
        }`,
      );
    }
  }
}

/** Returns the possible fields at the point where the path fails, in index notation. */
function fieldsBeside(schema: Schema, path: readonly string[]): string {
  for (let known = path.length - 1; known > 0; known--) {
    const prefix = path.slice(0, known);
    const names = fieldNames(schema, prefix);
    if (names.length > 0) return shown(names.map((name) => [...prefix, name].join(".")));
  }
  return shown([...fieldNames(schema, []), "_id", "_creationTime"]);
}

function shown(names: readonly string[]): string {
  const more = names.length - FIELDS_SHOWN;
  return names.slice(0, FIELDS_SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function surelyLacks(schema: Schema, path: readonly string[]): boolean {
  try {
    return new Search(path, () => {}).lacks(schema, 0);
  } catch {
    // Getters of shapes and lazy schemas run app code, which may not be initialized yet.
    return false;
  }
}

/** Returns the known field names of the value at a path. */
function fieldNames(schema: Schema, path: readonly string[]): string[] {
  const names = new Set<string>();
  try {
    // No field has this name, so every object at the path is visited.
    new Search([...path, ""], (fields) => fields.forEach((name) => names.add(name))).lacks(schema, 0);
  } catch {
    // Return the names found so far.
  }
  return [...names];
}

/** Follows a path through all alternatives of a schema. */
class Search {
  readonly #path: readonly string[];
  readonly #onObject: (fields: readonly string[]) => void;
  #seen = 0;

  /** Called with the fields of each object that would contain the path's last name. */
  constructor(path: readonly string[], onObject: (fields: readonly string[]) => void) {
    this.#path = path;
    this.#onObject = onObject;
  }

  /** Whether no value of the schema has the rest of the path, starting with the name `at`. */
  lacks(schema: Schema, at: number): boolean {
    if (at >= this.#path.length || ++this.#seen > SCHEMAS_MAX) return false;
    const def = schema._zod.def as Definition;
    if (changesValues(def)) return false;
    const { type, innerType, left, right, options } = def;
    if (withoutFields.has(type)) return true;
    if (wrappers.has(type)) return innerType !== undefined && this.lacks(innerType, at);
    switch (type) {
      case "object":
        return this.#objectLacks(def, at);
      case "union":
        // Visit every member to collect the names of its fields.
        return options !== undefined && options.map((option) => this.lacks(option, at)).every(Boolean);
      case "intersection":
        if (left === undefined || right === undefined) return false;
        return [this.lacks(left, at), this.lacks(right, at)].every(Boolean);
      case "record":
        return def.valueType !== undefined && at + 1 < this.#path.length && this.lacks(def.valueType, at + 1);
      case "literal":
        return def.values?.every((value) => typeof value !== "object" || value === null) ?? false;
      case "pipe":
        return def.out !== undefined && this.lacks(def.out, at);
      case "lazy":
        return def.getter !== undefined && this.lacks(def.getter(), at);
      default:
        return false;
    }
  }

  #objectLacks({ shape, catchall }: Definition, at: number): boolean {
    const name = this.#path[at];
    if (shape === undefined || name === undefined) return false;
    const names = Object.keys(shape);
    if (at === this.#path.length - 1) this.#onObject(names);
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (field !== undefined) return this.lacks(field, at + 1);
    // The path may contain a name with a dot in it.
    if (names.some((other) => other.includes("."))) return false;
    return catchall === undefined || catchall._zod.def.type === "never";
  }
}

/** Whether code attached to the schema may replace its values. */
function changesValues({ checks = [] }: Definition): boolean {
  return checks.some(({ _zod: { def: { check } } }) => check === "overwrite" || check === "custom");
}
