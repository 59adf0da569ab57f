/** Search, filter and order of a table's documents, as a bar and as a document selection that uses an index where possible. */
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import type { Condition, Where } from "../../server/api.ts";
import { propertiesOf } from "../../server/json_schema.ts";
import { useRoute } from "../../shell/route.ts";
import { Button, Icon } from "../../ui/controls.tsx";

const BY_TIME = "by_creation_time";

export type Operator = Condition["op"];

const OPERATORS: Readonly<Record<Operator, string>> = {
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

/** Reads `field`, `op`, `value`, `index`, `order` and `search`. A value is parsed as JSON, or else taken as a string. */
export function whereOf(table: TableOverview, params: URLSearchParams): Where {
  const text = params.get("search") ?? "";
  const [searchIndex] = table.searchIndexes;
  const conditions = conditionOf(params);
  const base = { table: table.name, ...(conditions && { conditions: [conditions] }) };
  if (text !== "" && searchIndex !== undefined) return { ...base, search: { index: searchIndex.name, text } };
  const index = params.get("index") ?? BY_TIME;
  const order = params.get("order") === "asc" ? "asc" : "desc";
  const serving = servingIndex(table, { condition: conditions, preferred: index });
  const range = rangeOf(conditions);
  // An index that starts with the field avoids a scan.
  if (serving !== null && range !== null) return { table: table.name, index: serving, range, order };
  return { ...base, order, ...(index !== BY_TIME && { index }) };
}

/** Whether the whole table is selected. */
export function isWhole({ range, search, conditions }: Where): boolean {
  return range === undefined && search === undefined && (conditions ?? []).length === 0;
}

/** Returns an index that fully serves a condition, preferably the given one, or `null`. */
function servingIndex(
  table: TableOverview,
  { condition, preferred = BY_TIME }: { readonly condition: Condition | null; readonly preferred?: string },
): string | null {
  if (condition === null || rangeOf(condition) === null) return null;
  if (condition.field === "_creationTime") return BY_TIME;
  const serving = table.indexes.filter(({ fields: [first] }) => first === condition.field);
  return (serving.find(({ name }) => name === preferred) ?? serving[0])?.name ?? null;
}

/** Returns the index range that a condition on the first field selects, or `null`. */
function rangeOf(condition: Condition | null): NonNullable<Where["range"]> | null {
  switch (condition?.op) {
    case "eq":
      return { eq: [condition.value] };
    case "missing":
      return { eq: [{ $missing: true }] };
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return { [condition.op]: condition.value };
    default:
      return null;
  }
}

function conditionOf(params: URLSearchParams): Condition | null {
  const field = params.get("field") ?? "";
  const op = (params.get("op") ?? "eq") as Operator;
  const text = params.get("value") ?? "";
  if (field === "" || !(op in OPERATORS)) return null;
  if (op === "missing" || op === "present") return { field, op };
  if (text === "") return null;
  if (op === "contains") return { field, op, value: text };
  return { field, op, value: valueOf(text) };
}

/** Parses JSON such as `42`, `true` or `"42"`; anything else is a string. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function FilterBar({ table, onChange }: {
  readonly table: TableOverview;
  readonly onChange: (changes: Readonly<Record<string, string>>) => void;
}) {
  const { search } = useRoute();
  const of = (name: string) => search.get(name) ?? "";
  const fields = Object.keys(propertiesOf(table.schema));
  const [searchIndex] = table.searchIndexes;
  const op = of("op") || "eq";
  const descending = of("order") !== "asc";
  const valueless = op === "missing" || op === "present";
  return (
    <>
      {searchIndex !== undefined && (
        <input
          className="input narrow"
          type="search"
          placeholder={`Search ${searchIndex.searchField}`}
          aria-label={`Search ${searchIndex.searchField}`}
          value={of("search")}
          onChange={(event) => onChange({ search: event.target.value })}
        />
      )}
      <select
        className="input fit"
        aria-label="Field to filter by"
        value={of("field")}
        onChange={(event) => onChange({ field: event.target.value })}
      >
        <option value="">All documents</option>
        {fields.map((field) => (
          <option key={field} value={field}>
            {field}
            {servingIndex(table, { condition: { field, op: "eq", value: null } }) === null ? "" : " (index)"}
          </option>
        ))}
      </select>
      {of("field") !== "" && (
        <select
          className="input fit"
          aria-label="Operator"
          value={op}
          onChange={(event) => onChange({ op: event.target.value })}
        >
          {Object.entries(OPERATORS).map(([value, text]) => (
            <option key={value} value={value}>{text}</option>
          ))}
        </select>
      )}
      {of("field") !== "" && !valueless && (
        <input
          className="input narrow"
          placeholder="Value"
          aria-label="Filter value"
          value={of("value")}
          onChange={(event) => onChange({ value: event.target.value })}
        />
      )}
      <select
        className="input fit"
        aria-label="Order by"
        value={of("index") || BY_TIME}
        onChange={(event) => onChange({ index: event.target.value })}
      >
        <option value={BY_TIME}>Creation time</option>
        {table.indexes.filter(({ name }) => name !== BY_TIME).map(({ name, fields }) => (
          <option key={name} value={name}>By {fields.join(", ")}</option>
        ))}
      </select>
      <Button
        aria-label={descending ? "Descending. Switch to ascending." : "Ascending. Switch to descending."}
        title={descending ? "Descending" : "Ascending"}
        onClick={() => onChange({ order: descending ? "asc" : "" })}
      >
        <Icon name={descending ? "down" : "up"} />
      </Button>
    </>
  );
}
