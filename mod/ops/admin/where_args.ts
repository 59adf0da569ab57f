/** Arguments that select documents of a table, and the evaluation of their conditions. */
import { z } from "zod";
import { compareValues } from "../../engine/mod.ts";
import type { Doc, Value } from "../../engine/types.ts";
import { opsLimits } from "../limits.ts";

/** A field value; `{ "$missing": true }` matches missing fields. */
const comparable = z.unknown();

const searchSchema = z.strictObject({
  index: z.string(),
  text: z.string().max(opsLimits.adminSearchCharsMax),
  /** Values of the index's filter fields. */
  eq: z.record(z.string(), comparable).default({}),
});

const rangeSchema = z.strictObject({
  /** Equal values for the first fields of the index. */
  eq: z.array(comparable).max(16).default([]),
  gt: comparable.optional(),
  gte: comparable.optional(),
  lt: comparable.optional(),
  lte: comparable.optional(),
});

/** Checked on each document read, so an index is faster. */
const conditionSchema = z.discriminatedUnion("op", [
  z.strictObject({
    field: z.string(),
    op: z.enum(["eq", "neq", "gt", "gte", "lt", "lte"]),
    value: comparable,
  }),
  /** Substring, ignoring case. */
  z.strictObject({ field: z.string(), op: z.literal("contains"), value: z.string() }),
  z.strictObject({ field: z.string(), op: z.enum(["missing", "present"]) }),
]);

/** Arguments that select documents. */
export const whereArgs = {
  table: z.string(),
  /** Default: `by_creation_time`. */
  index: z.string().optional(),
  range: rangeSchema.optional(),
  search: searchSchema.optional(),
  conditions: z.array(conditionSchema).max(opsLimits.adminConditionsMax).default([]),
  order: z.enum(["asc", "desc"]).optional(),
};

const whereSchema = z.strictObject(whereArgs);
export type Where = z.output<typeof whereSchema>;
export type Range = z.output<typeof rangeSchema>;
export type Search = z.output<typeof searchSchema>;
type Condition = z.output<typeof conditionSchema>;

export function valueOf(value: unknown): Value | undefined {
  const missing = typeof value === "object" && value !== null && "$missing" in value &&
    value.$missing === true && Object.keys(value).length === 1;
  return missing ? undefined : value as Value;
}

/** Whether a document meets all conditions. */
export function matchesConditions(doc: Doc, conditions: readonly Condition[]): boolean {
  return conditions.every((condition) => matches(fieldAt(doc, condition.field), condition));
}

function matches(value: Value | undefined, condition: Condition): boolean {
  switch (condition.op) {
    case "missing":
      return value === undefined;
    case "present":
      return value !== undefined;
    case "contains":
      return typeof value === "string" && value.toLowerCase().includes(condition.value.toLowerCase());
    case "eq":
      return compared(value, condition.value) === 0;
    case "neq":
      return compared(value, condition.value) !== 0;
    case "gt":
      return compared(value, condition.value) > 0;
    case "gte":
      return compared(value, condition.value) >= 0;
    case "lt":
      return compared(value, condition.value) < 0;
    case "lte":
      return compared(value, condition.value) <= 0;
    default:
      return condition satisfies never;
  }
}

function compared(value: Value | undefined, operand: unknown): number {
  return compareValues(value, valueOf(operand));
}

/** Returns a field, possibly nested, such as `address.city`. */
function fieldAt(doc: Doc, path: string): Value | undefined {
  if (Object.hasOwn(doc, path)) return doc[path];
  let value: Value | undefined = doc;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, name)) {
      return undefined;
    }
    value = value[name];
  }
  return value;
}
