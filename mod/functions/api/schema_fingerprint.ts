/**
 * A text that changes whenever what a zod schema accepts may have changed, so that stored documents need not be checked
 * again at every start. Schemas with code of their own (refinements, transforms) have none: code cannot be compared.
 */
import { z } from "zod";
import type { TableDefinition } from "../../engine/types.ts";

/** Keys of a definition that do not say what is accepted: messages, and when the checks built into zod are run. */
const ignoredKeys: ReadonlySet<string> = new Set(["error", "abort", "when"]);

/** Schemas made by `id()`, whose code is ours, by the table they name. */
const idSchemas = new WeakMap<object, string>();

/** Tells that a schema is the one of `id(table)`. */
export function markIdSchema(schema: object, table: string): void {
  idSchemas.set(schema, table);
}

/** The table whose ids a schema takes; `undefined` for schemas not made by `id()`. */
export function idSchemaTable(schema: object): string | undefined {
  return idSchemas.get(schema);
}

/** Schemas that put in what is not there, or turn one thing into another: stored documents must be as they make them. */
const fills = /"type":"(default|prefault|catch)"|"coerce":true/;

/** Thrown, and caught here, where a schema holds code. */
class HoldsCode extends Error {}

/** The fingerprint of a table's schema, as the engine wants it: left out when there can be none. */
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
  // A schema that contains itself is made with code anyway.
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
