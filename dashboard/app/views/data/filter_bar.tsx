/** Search, filter and order of a table's documents. */
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { useRoute } from "../../shell/route.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { propertiesOf } from "../../server/json_schema.ts";
import { BY_TIME, OPERATORS, servingIndex } from "./where.ts";

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
