/** The columns of a table's grid: which are shown, how wide, and how many stay while scrolling sideways. */
import { type CSSProperties, useEffect, useMemo, useRef, useState } from "react";
import { useMutation, useQuery } from "syncline/react";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import type { TableColumns, TableView } from "../../../../mod/ops/admin/isolate_functions/views.ts";
import { api } from "../../server/api.ts";
import { choicesOf, plainOf, propertiesOf, type Schema } from "../../server/json_schema.ts";
import { attempt } from "../../ui/toasts.tsx";

export type { TableColumns, TableView };

/** Maximum number of columns; the document shows the remaining fields. */
const COLUMNS_MAX = 60;
/** Width of the column with the check boxes. */
const CHECK = "2.25rem";
const WIDTH_PX = 208;
/** Width of columns with short values: wide enough for a time in milliseconds. */
const SHORT_WIDTH_PX = 128;
/** Length of the name and the longest choice of a short field. */
const SHORT_CHARS = 14;
const WIDTH_MIN_PX = 48;
const WIDTH_MAX_PX = 2_000;
export const FROZEN_MAX = 4;
/** Changes are stored when the columns have been the same for this long. */
const SAVED_AFTER_MS = 400;

const usual: TableColumns = { hidden: [], widths: {}, frozen: 1 };

/** All columns that a table's grid can show. */
export function columnsOf({ schema }: TableOverview): readonly string[] {
  return ["_id", ...Object.keys(propertiesOf(schema)).slice(0, COLUMNS_MAX), "_creationTime"];
}

/** Names of the number fields, which are right-aligned. */
export function numberFields({ schema }: TableOverview): ReadonlySet<string> {
  const isNumber = (type: unknown) => type === "number" || type === "integer";
  return new Set(
    Object.entries(propertiesOf(schema)).filter(([, field]) => isNumber(plainOf(field)["type"]))
      .map(([name]) => name),
  );
}

/** Default width of each column whose name and values are short, so that more columns are visible. */
function shortWidths(table: TableOverview): Readonly<Record<string, number>> {
  const numbers = numberFields(table);
  const isShort = (name: string, field: Schema) =>
    name.length <= SHORT_CHARS &&
    (numbers.has(name) || plainOf(field)["type"] === "boolean" ||
      choicesOf(field)?.every((choice) => String(choice).length <= SHORT_CHARS));
  const short = Object.entries(propertiesOf(table.schema)).filter(([name, field]) => isShort(name, field));
  return Object.fromEntries(short.map(([name]) => [name, SHORT_WIDTH_PX]));
}

/** The columns that are shown. */
export function shownColumns(table: TableOverview, { hidden }: TableColumns): readonly string[] {
  return columnsOf(table).filter((name) => !hidden.includes(name));
}

export function widthOf(name: string, { columns, defaults }: ColumnWidths): number {
  return columns.widths[name] ?? defaults[name] ?? WIDTH_PX;
}

export function withWidth(columns: TableColumns, name: string, width: number): TableColumns {
  const bounded = Math.round(Math.max(WIDTH_MIN_PX, Math.min(WIDTH_MAX_PX, width)));
  return { ...columns, widths: { ...columns.widths, [name]: bounded } };
}

/** Widths of the frozen columns, with the check boxes, and of the others, as custom properties of the grid. */
export function columnStyle(shown: readonly string[], arranged: ColumnWidths): CSSProperties {
  const { columns } = arranged;
  const style: Record<string, string> = {};
  const widths = shown.map((name) => widthOf(name, arranged));
  const template = (widths: readonly number[]) => widths.map((width) => `${width}px`).join(" ");
  const widthTo = (end: number) =>
    `calc(${CHECK} + ${widths.slice(0, end).reduce((sum, width) => sum + width, 0)}px)`;
  style["--frozen"] = `${CHECK} ${template(widths.slice(0, columns.frozen))}`;
  style["--frozen-width"] = widthTo(columns.frozen);
  // An empty property would make the whole template of a narrow screen invalid.
  style["--others"] = template(widths.slice(columns.frozen)) || "0px";
  style["--row"] = widthTo(widths.length);
  return style as CSSProperties;
}

interface ColumnWidths {
  readonly columns: TableColumns;
  /** Widths of columns with short values. Other columns that were not resized have the usual width. */
  readonly defaults: Readonly<Record<string, number>>;
}

export interface ArrangedColumns extends ColumnWidths {
  /** Saved views of the table, which have names. */
  readonly views: readonly TableView[];
  /** Changes the columns, now and for the next visit. */
  readonly arrange: (columns: TableColumns) => void;
  readonly reset: () => void;
}

/** The administrator's columns of a table; `null` until they are loaded. */
export function useColumns(overview: TableOverview): ArrangedColumns | null {
  const { name: table } = overview;
  const stored = useQuery(api.views.list, { table });
  const save = useMutation(api.views.save);
  const [edited, setEdited] = useState<TableColumns | null>(null);
  /** Columns that are not stored yet. */
  const unsaved = useRef<
    { readonly columns: TableColumns; readonly timer: ReturnType<typeof setTimeout> } | null
  >(null);
  const store = () => {
    if (unsaved.current === null) return;
    const { columns, timer } = unsaved.current;
    clearTimeout(timer);
    unsaved.current = null;
    const { hidden, widths, frozen } = columns;
    void attempt(() =>
      save({ table, name: "", filters: "", hidden: [...hidden], widths: { ...widths }, frozen })
    );
  };
  useEffect(() => store, []);
  const defaults = useMemo(() => shortWidths(overview), [overview]);
  if (stored === undefined) return null;
  const arrange = (columns: TableColumns) => {
    setEdited(columns);
    clearTimeout(unsaved.current?.timer);
    unsaved.current = { columns, timer: setTimeout(store, SAVED_AFTER_MS) };
  };
  return {
    columns: edited ?? stored.find(({ name }) => name === "") ?? usual,
    defaults,
    views: stored.filter(({ name }) => name !== ""),
    arrange,
    reset: () => arrange(usual),
  };
}
