/**
 * Virtualized grid of documents: only rows in view are rendered and only pages near them are loaded.
 * Arrow keys, Home and End move, Enter opens, Space selects, F2 edits the current field.
 */
import { type KeyboardEvent, memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useQuery } from "syncline/react";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { api, type Where } from "../../server/api.ts";
import { propertiesOf, tableOf } from "../../server/json_schema.ts";
import { href } from "../../shell/route.ts";
import { count as countText } from "../../ui/format.tsx";
import { Empty, Loading } from "../../ui/view.tsx";
import { type ArrangedColumns, columnStyle, numberFields, shownColumns, withWidth } from "./columns.ts";
import { isWhole } from "./filters.ts";
import { type GridOrder, HeadCell } from "./grid_head.tsx";
import { GridRow, type GridRowShared, type Row } from "./grid_row.tsx";
import { useLabels } from "./labels.ts";
import { PAGE, type PageAnswer, rowsOf } from "./page_window.ts";
import { type PositionedSpan, useDocumentPages } from "./use_document_pages.ts";
import { ROW_PX, useVirtualScroll } from "./virtual_scroll.ts";

interface PendingRowsProps {
  /** Positions: `first` inclusive, `last` exclusive. */
  readonly first: number;
  readonly last: number;
  /** Offset between a row's position in pixels and its place in the scrolled element. */
  readonly shift: number;
}

/** Placeholders of rows that are not loaded yet, with row numbers. */
const PendingRows = memo(function PendingRows({ first, last, shift }: PendingRowsProps) {
  // Keyed by index, so that scrolling reuses the elements.
  return Array.from({ length: Math.max(0, last - first) }, (_, at) => (
    <div
      key={at}
      className="grid-pending"
      aria-hidden="true"
      style={{ transform: `translateY(${(first + at) * ROW_PX - shift}px)` }}
    >
      {countText(first + at + 1)}
    </div>
  ));
});

interface GridPageProps {
  readonly where: Where;
  readonly placed: PositionedSpan;
  /** Positions of the rows to render. */
  readonly first: number;
  readonly last: number;
  /** Offset between a row's position in pixels and its place in the scrolled element. */
  readonly shift: number;
  /** Position of the current row, if it is in this page, and the current column. */
  readonly current: number | null;
  readonly column: number;
  readonly selected: ReadonlyMap<string, Row>;
  readonly editing: { readonly id: string; readonly name: string } | null;
  readonly shared: GridRowShared;
  readonly onAnswer: (id: number, answer: PageAnswer) => void;
  /** Called with the rows of the page, and with `null` when it is unmounted. */
  readonly onRows: (id: number, at: number, rows: readonly Row[] | null) => void;
}

const none: readonly Row[] = [];

interface Answer {
  readonly page: readonly Row[];
  readonly continueCursor: string;
  readonly isDone: boolean;
  readonly splitCursor?: string;
}

/** A page of the grid: a live query whose rows in view are rendered. */
const GridPage = memo(function GridPage(props: GridPageProps) {
  const { where, placed: { span, at }, first, last, shift, current, column, selected, editing, shared } =
    props;
  const { onAnswer, onRows } = props;
  const answer = useQuery(api.data.documents, {
    ...where,
    paginationOpts: { cursor: span.start, numItems: PAGE, ...(span.end !== null && { endCursor: span.end }) },
  } as never) as Answer | undefined;
  // Keep showing the previous rows while a page with a new end loads.
  const shown = useRef<readonly Row[] | null>(null);
  const changed = useChanged(answer?.page);
  if (answer !== undefined) shown.current = answer.page;
  const rows = shown.current ?? none;
  useEffect(() => {
    if (answer === undefined) return;
    const { page, continueCursor, isDone, splitCursor } = answer;
    onAnswer(span.id, {
      rows: page.length,
      continueCursor,
      isDone,
      ...(splitCursor !== undefined && { splitCursor }),
    });
  }, [answer, span.id, span.end]);
  useEffect(() => onRows(span.id, at, rows), [rows, at]);
  useEffect(() => () => onRows(span.id, at, null), []);
  const labels = useLabels(useReferences(rows, shared.references));
  if (shown.current === null) {
    return <PendingRows first={Math.max(first, at)} last={Math.min(last, at + rowsOf(span))} shift={shift} />;
  }
  const from = Math.max(0, first - at);
  return rows.slice(from, Math.max(from, last - at)).map((row, offset) => {
    const position = at + from + offset;
    return (
      <GridRow
        key={row._id}
        row={row}
        position={position}
        top={position * ROW_PX - shift}
        selected={selected.has(row._id)}
        changed={changed.has(row._id)}
        column={position === current ? column : null}
        editing={editing?.id === row._id ? editing.name : null}
        labels={labels}
        shared={shared}
      />
    );
  });
});

/** IDs of the documents that rows refer to. */
function useReferences(rows: readonly Row[], fields: readonly string[]): readonly string[] {
  return useMemo(() => {
    const all = rows.flatMap((row) => fields.map((field) => row[field]));
    return [...new Set(all.filter((id) => typeof id === "string"))];
  }, [rows, fields]);
}

/** IDs of rows that changed since the previous result. Unchanged rows keep their object identity. */
function useChanged(rows: readonly Row[] | undefined): ReadonlySet<string> {
  const before = useRef<{ readonly rows: readonly Row[] | undefined; readonly changed: ReadonlySet<string> }>(
    {
      rows: undefined,
      changed: new Set(),
    },
  );
  if (rows !== undefined && rows !== before.current.rows) {
    const known = new Map(before.current.rows?.map((row) => [row._id, row]));
    const other = rows.filter((row) => known.has(row._id) && known.get(row._id) !== row);
    before.current = { rows, changed: new Set(other.map(({ _id }) => _id)) };
  }
  return before.current.changed;
}

/** Rows moved by Page Up and Page Down. */
const KEY_PAGE = 20;

export interface DocumentGridProps {
  readonly table: TableOverview;
  readonly where: Where;
  readonly order: GridOrder;
  readonly arranged: ArrangedColumns;
  /** Selected rows by ID, as last shown. */
  readonly selected: ReadonlyMap<string, Row>;
  readonly onSelect: (rows: ReadonlyMap<string, Row>) => void;
  /** Called with the rows shown, initially and on every change. */
  readonly onShown: (rows: readonly Row[]) => void;
  readonly onOpen: (id: string) => void;
  /** Changes one field; `null` if the table is read-only. */
  readonly onEdit: ((row: Row, change: FieldChange) => void) | null;
}

export interface FieldChange {
  readonly name: string;
  /** `undefined` removes the field. */
  readonly value: unknown;
}

export function DocumentGrid(props: DocumentGridProps) {
  const { table, where, selected, arranged: { columns: arrangement, arrange } } = props;
  const place = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(0);
  /** Index of the current column; 0 selects the whole row. */
  const [column, setColumn] = useState(0);
  const [editing, setEditing] = useState<{ readonly id: string; readonly name: string } | null>(null);
  const loaded = useLoaded();
  const columns = useMemo(() => shownColumns(table, arrangement), [table, arrangement.hidden]);
  const list = useDocumentPages(where, isWhole(where) ? table.count : null);
  const scroll = useVirtualScroll(place, list.total);
  useEffect(() => list.onView(scroll.first, scroll.last), [scroll.first, scroll.last]);

  // Callbacks read the latest props from a ref, so that they stay stable and rows do not re-render.
  const latest = useRef({ ...props, columns });
  useLayoutEffect(() => void (latest.current = { ...props, columns }));
  const shared = useMemo((): GridRowShared => ({
    columns,
    frozen: arrangement.frozen,
    properties: propertiesOf(table.schema),
    numbers: numberFields(table),
    references: columns.filter((name) => tableOf(propertiesOf(table.schema)[name]) !== null),
    onOpen(position, id) {
      if (position !== null) setCurrent(position);
      latest.current.onOpen(id);
    },
    onToggle(row) {
      const next = new Map(latest.current.selected);
      if (!next.delete(row._id)) next.set(row._id, row);
      latest.current.onSelect(next);
    },
    onEdit: props.onEdit === null ? null : ({ position, column, id }) => {
      setCurrent(position);
      setColumn(column);
      setEditing({ id, name: latest.current.columns[column - 1] ?? "" });
    },
    onLeave(left) {
      setEditing(null);
      if (left === "key") place.current?.focus();
    },
    onStore: (row, change) => latest.current.onEdit?.(row, change),
  }), [columns, arrangement.frozen, table, props.onEdit === null]);

  const onRows = useMemo(() => (id: number, at: number, rows: readonly Row[] | null) => {
    loaded.onRows(id, at, rows);
    if (rows !== null) latest.current.onShown(rows);
  }, [loaded]);

  function move(to: number): void {
    const next = Math.max(0, Math.min(list.total - 1, to));
    setCurrent(next);
    scroll.show(next);
  }
  function edit(row: Row, name: string | undefined): void {
    if (props.onEdit !== null && name !== undefined && !name.startsWith("_")) {
      setEditing({ id: row._id, name });
    }
  }
  function onKey(event: KeyboardEvent): void {
    const row = loaded.rowAt(current);
    const moves: Record<string, number> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + KEY_PAGE,
      PageUp: current - KEY_PAGE,
      Home: 0,
      End: list.total - 1,
    };
    const to = moves[event.key];
    if (to !== undefined) move(to);
    else if (event.key === "ArrowRight") setColumn(Math.min(columns.length, column + 1));
    else if (event.key === "ArrowLeft") setColumn(Math.max(0, column - 1));
    else if (event.key === "F2" && row !== undefined) edit(row, columns[column - 1]);
    else if (event.key === "Enter" && row !== undefined) props.onOpen(row._id);
    else if (event.key === " " && row !== undefined) shared.onToggle(row);
    else return;
    event.preventDefault();
  }

  const [only] = list.near;
  if (list.exact && list.total === 0) {
    return (
      <div className="grid">
        <Empty title="No documents">
          {!isWhole(where) && (
            <p>
              Deletions by administrators are in the{" "}
              <a href={href(["audit"], { action: "_admin/data:" })}>audit log</a>, with the history of the
              documents.
            </p>
          )}
        </Empty>
        {only !== undefined && (
          <GridPage
            {...{ where, current: null, column, selected, editing, shared, ...scroll }}
            placed={only}
            onAnswer={list.onAnswer}
            onRows={onRows}
          />
        )}
      </div>
    );
  }
  const active = loaded.rowAt(current);
  const heads = columns.map((name) => (
    <HeadCell
      key={name}
      name={name}
      order={props.order}
      isNumber={shared.numbers.has(name)}
      onResize={(width) => arrange(withWidth(arrangement, name, width))}
    />
  ));
  return (
    <>
      <div
        ref={place}
        className="grid"
        role="grid"
        aria-label={`Documents of ${table.name}`}
        aria-rowcount={list.counted ? list.total + 1 : -1}
        aria-colcount={columns.length + 1}
        aria-multiselectable="true"
        aria-busy={active === undefined}
        aria-activedescendant={active === undefined
          ? undefined
          : column === 0
          ? `row-${active._id}`
          : `cell-${active._id}-${column}`}
        tabIndex={0}
        style={columnStyle(columns, props.arranged)}
        onKeyDown={onKey}
        onScroll={({ currentTarget }) => {
          currentTarget.toggleAttribute("data-sideways", currentTarget.scrollLeft > 0);
          scroll.onScroll();
        }}
      >
        <div className="grid-row grid-head" role="row" aria-rowindex={1}>
          <div className="frozen" role="none">
            <span className="cell check" role="columnheader">
              <span className="sr-only">Selected</span>
            </span>
            {heads.slice(0, arrangement.frozen)}
          </div>
          {heads.slice(arrangement.frozen)}
        </div>
        <div
          className="grid-body"
          role="rowgroup"
          // Placeholders are hidden from assistive technology.
          aria-busy={!loaded.hasRows(scroll.first, scroll.last)}
          style={{ height: scroll.height }}
        >
          <PendingRows
            first={scroll.first}
            last={Math.min(scroll.last, list.known.first)}
            shift={scroll.shift}
          />
          <PendingRows
            first={Math.max(scroll.first, list.known.last)}
            last={scroll.last}
            shift={scroll.shift}
          />
          {list.near.map((placed) => (
            <GridPage
              key={placed.span.id}
              where={where}
              placed={placed}
              first={scroll.first}
              last={scroll.last}
              shift={scroll.shift}
              current={current}
              column={column}
              selected={selected}
              editing={editing}
              shared={shared}
              onAnswer={list.onAnswer}
              onRows={onRows}
            />
          ))}
        </div>
        {loaded.none && <Loading />}
      </div>
      <p className="grid-foot quiet">
        {`${countText(Math.min(scroll.seen[0] + 1, list.total))} – ${countText(scroll.seen[1])} of ${
          list.counted ? countText(list.total) : "more"
        }`}
      </p>
    </>
  );
}

/** Rows of the mounted pages by position. */
function useLoaded() {
  const pages = useRef(new Map<number, { readonly at: number; readonly rows: readonly Row[] }>());
  const [none, setNone] = useState(true);
  return useMemo(() => ({
    none,
    onRows(id: number, at: number, rows: readonly Row[] | null) {
      if (rows === null) pages.current.delete(id);
      else pages.current.set(id, { at, rows });
      if (rows !== null && rows.length > 0) setNone(false);
    },
    hasRows(first: number, last: number): boolean {
      return [...pages.current.values()].some(({ at, rows }) =>
        rows.length > 0 && at < last && at + rows.length > first
      );
    },
    rowAt(position: number): Row | undefined {
      for (const { at, rows } of pages.current.values()) {
        if (position >= at && position < at + rows.length) return rows[position - at];
      }
    },
  }), [none]);
}
