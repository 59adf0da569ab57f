/** Filters and order of a table's documents in the address, and the selection of documents that serves them by an index. */
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import type { Condition, Where } from "../../server/api.ts";
import { choicesOf, plainOf, propertiesOf, type Schema } from "../../server/json_schema.ts";

export const BY_TIME = "by_creation_time";

export type Operator = Condition["op"];

export const OPERATORS: Readonly<Record<Operator, string>> = {
  eq: "is",
  neq: "is not",
  gt: "is greater than",
  gte: "is at least",
  lt: "is less than",
  lte: "is at most",
  contains: "contains",
  missing: "is missing",
  present: "exists",
};

export const takesValue = (op: Operator): boolean => op !== "missing" && op !== "present";

/** One filter as entered. All filters must match. */
export interface Filter {
  readonly field: string;
  readonly op: Operator;
  readonly value: string;
}

/** Below the server's limit of conditions. */
export const FILTERS_MAX = 8;

const PARTS = ["field", "op", "value"] as const;

/** The first filter is in `field`, `op` and `value`, the second in `field2`, `op2` and `value2`, and so on. */
const nameOf = (part: (typeof PARTS)[number], position: number): string =>
  position === 0 ? part : `${part}${position + 1}`;

export function filtersOf(params: URLSearchParams): readonly Filter[] {
  const found: Filter[] = [];
  for (let at = 0; at < FILTERS_MAX; at++) {
    const [field = "", op = "", value = ""] = PARTS.map((part) => params.get(nameOf(part, at)) ?? "");
    if (field === "") break;
    found.push({ field, op: op in OPERATORS ? op as Operator : "eq", value });
  }
  return found;
}

/** Returns the parameters of filters; those of removed ones are empty. */
export function paramsOf(filters: readonly Filter[]): Record<string, string> {
  const params: Record<string, string> = {};
  for (let at = 0; at < FILTERS_MAX; at++) {
    for (const part of PARTS) params[nameOf(part, at)] = filters[at]?.[part] ?? "";
  }
  return params;
}

/** The schema of a field's values. */
export function schemaOf(table: TableOverview, field: string): Schema {
  if (field === "_creationTime") return { type: "number" };
  if (field === "_id") return { type: "string" };
  return propertiesOf(table.schema)[field] ?? {};
}

/** Returns the condition of a filter; `null` while its value is missing. */
function conditionOf(table: TableOverview, { field, op, value }: Filter): Condition | null {
  if (op === "missing" || op === "present") return { field, op };
  if (value === "") return null;
  if (op === "contains") return { field, op, value };
  const schema = schemaOf(table, field);
  const isText = plainOf(schema)["type"] === "string" ||
    choicesOf(schema)?.every((choice) => typeof choice === "string") === true;
  return { field, op, value: isText ? value : valueOf(value) };
}

/** Parses JSON such as `42`, `true` or `"42"`; anything else is a string. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Reads the filters, `index`, `order` and `search`. A chosen index determines the order; otherwise the best one is used. */
export function whereOf(table: TableOverview, params: URLSearchParams): Where {
  const text = params.get("search") ?? "";
  const [searchIndex] = table.searchIndexes;
  const conditions = filtersOf(params).flatMap((filter) => conditionOf(table, filter) ?? []);
  const left = (remaining: readonly Condition[]) => remaining.length === 0 ? {} : { conditions: remaining };
  if (text !== "" && searchIndex !== undefined) {
    return { table: table.name, ...left(conditions), search: { index: searchIndex.name, text } };
  }
  const chosen = params.get("index");
  const indexes = [{ name: BY_TIME, fields: [] }, ...table.indexes];
  const plans = indexes.filter(({ name }) => chosen === null || chosen === "" || name === chosen)
    .map((index) => planOf(index, conditions));
  const [best] = plans.toSorted((a, b) => a.conditions.length - b.conditions.length);
  if (best === undefined) return { table: table.name, ...left(conditions) };
  return {
    table: table.name,
    ...left(best.conditions),
    ...(best.range !== null && { range: best.range }),
    ...((best.index !== BY_TIME || best.range !== null) && { index: best.index }),
    order: params.get("order") === "asc" ? "asc" : "desc",
  };
}

/** Returns the parameter `index` for an order: empty if the filters choose this index anyway. */
export function indexParam(table: TableOverview, params: URLSearchParams, index: string): string {
  const others = new URLSearchParams(params);
  others.delete("index");
  return (whereOf(table, others).index ?? BY_TIME) === index ? "" : index;
}

interface Plan {
  readonly index: string;
  readonly range: NonNullable<Where["range"]> | null;
  /** Conditions that the index does not serve. */
  readonly conditions: readonly Condition[];
}

interface Index {
  readonly name: string;
  readonly fields: readonly string[];
}

/** Serves equal values of the index's first fields, and bounds of the next field. */
function planOf({ name, fields }: Index, conditions: readonly Condition[]): Plan {
  const eq: unknown[] = [];
  const bounds: Record<string, unknown> = {};
  const served = new Set<Condition>();
  for (const field of [...fields, "_creationTime"]) {
    const equal = conditions.find((one) => one.field === field && (one.op === "eq" || one.op === "missing"));
    if (equal !== undefined) {
      eq.push(equal.op === "eq" ? equal.value : { $missing: true });
      served.add(equal);
      continue;
    }
    for (const ops of [["gt", "gte"], ["lt", "lte"]]) {
      const bound = conditions.find((one) => one.field === field && ops.includes(one.op));
      if (bound === undefined || !("value" in bound)) continue;
      bounds[bound.op] = bound.value;
      served.add(bound);
    }
    break;
  }
  return {
    index: name,
    range: served.size === 0 ? null : { ...(eq.length > 0 && { eq }), ...bounds },
    conditions: conditions.filter((one) => !served.has(one)),
  };
}

/** Whether the whole table is selected. */
export function isWhole({ range, search, conditions }: Where): boolean {
  return range === undefined && search === undefined && (conditions ?? []).length === 0;
}

/** Returns the index that orders the filtered documents by a field, or `null`. */
export function orderingIndex(
  table: TableOverview,
  filters: readonly Filter[],
  field: string,
): string | null {
  if (field === "_creationTime") return BY_TIME;
  const fixed = new Set(
    filters.filter(({ op, value }) => op === "eq" && value !== "").map(({ field }) => field),
  );
  const ordering = table.indexes.filter(({ fields }) => fields.find((one) => !fixed.has(one)) === field);
  return ordering[0]?.name ?? null;
}
