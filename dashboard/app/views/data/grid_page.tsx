/** A page of the grid: a live query whose rows in view are rendered. */
import { memo, useEffect, useRef } from "react";
import { useQuery } from "syncline/react";
import { api, type Where } from "../../server/api.ts";
import { count } from "../../ui/format.tsx";
import { GridRow, type GridRowShared, type Row } from "./grid_row.tsx";
import { PAGE, type PageAnswer, rowsOf } from "./page_window.ts";
import type { PositionedSpan } from "./use_document_pages.ts";
import { ROW_PX } from "./virtual_scroll.ts";

interface PendingRowsProps {
  /** Positions: `first` inclusive, `last` exclusive. */
  readonly first: number;
  readonly last: number;
  /** Offset between a row's position in pixels and its place in the scrolled element. */
  readonly shift: number;
}

/** Placeholders of rows that are not loaded yet, with row numbers. */
export const PendingRows = memo(function PendingRows({ first, last, shift }: PendingRowsProps) {
  // Keyed by index, so that scrolling reuses the elements.
  return Array.from({ length: Math.max(0, last - first) }, (_, at) => (
    <div
      key={at}
      className="grid-pending"
      aria-hidden="true"
      style={{ transform: `translateY(${(first + at) * ROW_PX - shift}px)` }}
    >
      {count(first + at + 1)}
    </div>
  ));
});

export interface GridPageProps {
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

export const GridPage = memo(function GridPage(props: GridPageProps) {
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
        shared={shared}
      />
    );
  });
});

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
