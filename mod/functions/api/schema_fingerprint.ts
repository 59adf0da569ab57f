/**
 * A fingerprint that changes whenever the values accepted by a zod schema may have changed, so that stored documents need not
 * be validated at every start. Schemas with code (refinements, transforms) have none, because code cannot be compared.
 */
import { z } from "zod";
import type { TableDefinition } from "../../engine/types.ts";

/** Definition keys that do not affect which values are accepted. */
const ignoredKeys: ReadonlySet<string> = new Set(["error", "abort", "when"]);

/** Schemas created by `id()`, with their table. Their code is ours and can be ignored. */
const idSchemas = new WeakMap<object, string>();

/** Registers a schema as `id(table)`. */
export function markIdSchema(schema: object, table: string): void {
  idSchemas.set(schema, table);
}

/** Returns the table of an `id()` schema; otherwise `undefined`. */
export function idSchemaTable(schema: object): string | undefined {
  return idSchemas.get(schema);
}

/** Schemas that add or convert values: stored documents must be in the converted form. */
const fills = /"type":"(default|prefault|catch)"|"coerce":true/;

/** Thrown and caught in this module for schemas that contain code. */
class HoldsCode extends Error {}

/** Returns the fingerprint of a table's schema; absent if there is none. */
export function schemaFingerprint(schema: z.ZodType): Pick<TableDefinition, "fingerprint"> {
  try {
    const { major, minor, patch } = z.core.version;
    const text = textOf(schema, []);
    return { fingerprint: `${major}.${minor}.${patch} ${fills.test(text) ? "filled " : ""}${text}` };
  } catch (error) {
    if (error instanceof HoldsCode) return {};
    throw error;
  }
}

function textOf(value: unknown, ancestors: readonly object[]): string {
  if (typeof value === "function" || typeof value === "symbol") throw new HoldsCode();
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value !== "object" || value === null) {
    return Object.is(value, -0) ? "-0" : String(JSON.stringify(value));
  }
  // A recursive schema always contains code.
  if (ancestors.includes(value)) throw new HoldsCode();
  const path = [...ancestors, value];
  const table = idSchemas.get(value);
  if (table !== undefined) return `id(${JSON.stringify(table)})`;
  if (value instanceof RegExp) return String(value);
  if (value instanceof Date) return `Date(${value.getTime()})`;
  if (Array.isArray(value)) return `[${value.map((element) => textOf(element, path)).join()}]`;
  if (value instanceof Set || value instanceof Map) return textOf([...value], path);
  const definition = "_zod" in value ? (value as z.ZodType)._zod.def : value;
  const fields = Object.entries(definition)
    .filter(([key, field]) => !ignoredKeys.has(key) && field !== undefined)
    .map(([key, field]) => `${JSON.stringify(key)}:${textOf(field, path)}`);
  return `{${fields.sort().join()}}`;
}
