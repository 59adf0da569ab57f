/** Evaluates conditions of administrators' queries on documents. */
import { compareValues, type Doc, type Value } from "../../engine/mod.ts";
import { type Condition, valueOf } from "./where_args.ts";

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
