/** Search, filters and order of a table's documents. */
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { choicesOf, plainOf, propertiesOf, type Schema, tableOf } from "../../server/json_schema.ts";
import { useRoute } from "../../shell/route.ts";
import { Button, Icon } from "../../ui/controls.tsx";
import { pickerText } from "../../ui/format.tsx";
import {
  BY_TIME,
  type Filter,
  FILTERS_MAX,
  filtersOf,
  indexParam,
  OPERATORS,
  orderingIndex,
  paramsOf,
  schemaOf,
  takesValue,
  whereOf,
} from "./filters.ts";
import { ReferenceValue } from "./reference_value.tsx";

export function FilterBar({ table, onChange }: {
  readonly table: TableOverview;
  readonly onChange: (changes: Readonly<Record<string, string>>) => void;
}) {
  const { search } = useRoute();
  const of = (name: string) => search.get(name) ?? "";
  const filters = filtersOf(search);
  const fields = [...Object.keys(propertiesOf(table.schema)), "_creationTime"];
  const [searchIndex] = table.searchIndexes;
  const descending = of("order") !== "asc";
  const unused = fields.find((field) => filters.every((filter) => filter.field !== field)) ?? fields[0] ?? "";
  const change = (at: number, filter: Filter) =>
    onChange(paramsOf(filters.with(at, filter).filter(({ field }) => field !== "")));
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
      {filters.length === 0 && (
        <FieldChoice
          table={table}
          fields={fields}
          value=""
          onChange={(field) => onChange(paramsOf([{ field, op: "eq", value: "" }]))}
        />
      )}
      {filters.map((filter, at) => (
        <FilterFields
          key={at}
          table={table}
          fields={fields}
          filter={filter}
          position={at}
          onChange={(changed) => change(at, changed)}
        />
      ))}
      {filters.length > 0 && filters.length < FILTERS_MAX && (
        <Button onClick={() => onChange(paramsOf([...filters, { field: unused, op: "eq", value: "" }]))}>
          <Icon name="plus" /> Filter
        </Button>
      )}
      <select
        className="input fit"
        aria-label="Order by"
        value={whereOf(table, search).index ?? BY_TIME}
        onChange={({ target: { value } }) => onChange({ index: indexParam(table, search, value) })}
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

/** Labels of the fields of a filter: only those after the first have a number. */
const numbered = (label: string, position: number): string =>
  position === 0 ? label : `${label} ${position + 1}`;

function FieldChoice({ table, fields, value, position = 0, onChange }: {
  readonly table: TableOverview;
  readonly fields: readonly string[];
  readonly value: string;
  readonly position?: number;
  readonly onChange: (field: string) => void;
}) {
  return (
    <select
      className="input fit"
      aria-label={numbered("Field to filter by", position)}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">{position === 0 ? "All documents" : "No filter"}</option>
      {fields.map((field) => (
        <option key={field} value={field}>
          {field}
          {orderingIndex(table, [], field) === null ? "" : " (index)"}
        </option>
      ))}
    </select>
  );
}

function FilterFields({ table, fields, filter, position, onChange }: {
  readonly table: TableOverview;
  readonly fields: readonly string[];
  readonly filter: Filter;
  readonly position: number;
  /** A filter without a field is removed. */
  readonly onChange: (filter: Filter) => void;
}) {
  const { op, value } = filter;
  return (
    <span className="row filter">
      {position > 0 && <span className="quiet">and</span>}
      <FieldChoice
        table={table}
        fields={fields}
        value={filter.field}
        position={position}
        onChange={(field) => onChange({ field, op: "eq", value: "" })}
      />
      <select
        className="input fit"
        aria-label={numbered("Operator", position)}
        value={op}
        onChange={(event) => onChange({ ...filter, op: event.target.value as Filter["op"] })}
      >
        {Object.entries(OPERATORS).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </select>
      {takesValue(op) && (
        <FilterValue
          label={numbered("Filter value", position)}
          table={table}
          field={filter.field}
          op={op}
          value={value}
          onChange={(value) => onChange({ ...filter, value })}
        />
      )}
      {position > 0 && (
        <Button
          tone="plain"
          aria-label={`Remove filter ${position + 1}`}
          onClick={() => onChange({ ...filter, field: "" })}
        >
          <Icon name="close" />
        </Button>
      )}
    </span>
  );
}

/** Whether a field has dates: the creation time, in milliseconds, or ISO strings. */
function dateFormat(field: string, schema: Schema): "millis" | "date" | "date-time" | null {
  if (field === "_creationTime") return "millis";
  const { format } = plainOf(schema);
  return format === "date" || format === "date-time" ? format : null;
}

/** A choice for enums and booleans, pickers for dates and references, otherwise text. */
function FilterValue({ label, table, field, op, value, onChange }: {
  readonly label: string;
  readonly table: TableOverview;
  readonly field: string;
  readonly op: Filter["op"];
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  const schema = schemaOf(table, field);
  const choices = choicesOf(schema) ?? (plainOf(schema)["type"] === "boolean" ? [true, false] : null);
  if (choices !== null && op !== "contains") {
    return (
      <select
        className="input fit"
        aria-label={label}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      >
        <option value="">Choose…</option>
        {choices.map((choice) => (
          <option key={String(choice)} value={String(choice)}>{String(choice)}</option>
        ))}
      </select>
    );
  }
  const referenced = tableOf(schema);
  if (referenced !== null && op !== "contains") {
    return <ReferenceValue key={field} label={label} table={referenced} value={value} onChange={onChange} />;
  }
  const format = op === "contains" ? null : dateFormat(field, schema);
  if (format === "date") {
    return (
      <input
        className="input fit"
        type="date"
        aria-label={label}
        value={value}
        onChange={({ target }) => onChange(target.value)}
      />
    );
  }
  if (format !== null) {
    const at = format === "millis" ? Number(value) : Date.parse(value);
    return (
      <input
        className="input fit"
        type="datetime-local"
        step="1"
        aria-label={label}
        value={value === "" || Number.isNaN(at) ? "" : pickerText(at)}
        onChange={({ target }) => {
          const entered = new Date(target.value);
          onChange(
            target.value === ""
              ? ""
              : format === "millis"
              ? String(entered.getTime())
              : entered.toISOString(),
          );
        }}
      />
    );
  }
  return (
    <input
      className="input narrow"
      placeholder="Value"
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
