/** What administrators say of the documents they mean: the arguments, without what reads by them. */
import { z } from "zod";
import type { Value } from "../../engine/types.ts";
import { opsLimits } from "../limits.ts";

/** A value of a field; `{ "$missing": true }` stands for a field that is not there. */
const comparable = z.unknown();

const searchSchema = z.strictObject({
  index: z.string(),
  text: z.string().max(opsLimits.adminSearchCharsMax),
  /** Values of the index's filter fields. */
  eq: z.record(z.string(), comparable).default({}),
});

const rangeSchema = z.strictObject({
  /** Fixed values for the first fields of the index. */
  eq: z.array(comparable).max(16).default([]),
  gt: comparable.optional(),
  gte: comparable.optional(),
  lt: comparable.optional(),
  lte: comparable.optional(),
});

/** Conditions are checked on each document that is read: an index is faster. */
const conditionSchema = z.discriminatedUnion("op", [
  z.strictObject({
    field: z.string(),
    op: z.enum(["eq", "neq", "gt", "gte", "lt", "lte"]),
    value: comparable,
  }),
  /** Part of a text, whatever its case. */
  z.strictObject({ field: z.string(), op: z.literal("contains"), value: z.string() }),
  z.strictObject({ field: z.string(), op: z.enum(["missing", "present"]) }),
]);

/** The arguments that say which documents are meant. */
export const whereArgs = {
  table: z.string(),
  /** `by_creation_time` unless told. */
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
export type Condition = z.output<typeof conditionSchema>;

/** What a value of the arguments stands for. */
export function valueOf(value: unknown): Value | undefined {
  const missing = typeof value === "object" && value !== null && "$missing" in value &&
    value.$missing === true && Object.keys(value).length === 1;
  return missing ? undefined : value as Value;
}
