/**
 * Documents as rows: only those in view are in the page, however many there are. Arrows move, Enter opens, Space chooses,
 * F2 edits the field that is gone to.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import type { PageStatus } from "syncline/react";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { Icon } from "../../ui/icon.tsx";
import { Empty, Loading } from "../../ui/view.tsx";
import { Cell } from "./cell.tsx";
import { CellEditor } from "./cell_editor.tsx";
import { propertiesOf } from "./json_schema.ts";
import type { Row } from "./table_page.tsx";

const ROW_PX = 34;
const MORE = 200;
/** Rows from the end at which more are asked for. */
const AHEAD = 40;
/** Fields of documents that are wider are left to the document itself. */
const COLUMNS_MAX = 60;

export interface DocumentGridProps {
  readonly table: TableOverview;
  readonly rows: readonly Row[];
  readonly status: PageStatus;
  readonly loadMore: (count: number) => void;
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (ids: ReadonlySet<string>) => void;
  readonly onOpen: (id: string) => void;
  /** Changes one field; `null` where nothing may be changed. */
  readonly onEdit: ((row: Row, change: FieldChange) => void) | null;
}

export interface FieldChange {
  readonly name: string;
  /** `undefined`: the field goes. */
  readonly value: unknown;
}

export function DocumentGrid(
  { table, rows, status, loadMore, chosen, onChoose, onOpen, onEdit }: DocumentGridProps,
) {
  const place = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(0);
  /** Position of the column that is gone to; 0 is the row as a whole. */
  const [column, setColumn] = useState(0);
  const [editing, setEditing] = useState<{ readonly id: string; readonly name: string } | null>(null);
  const changed = useChanged(rows);
  const columns = useMemo(() => columnsOf(table), [table]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (status === "CanLoadMore" && last >= rows.length - AHEAD) loadMore(MORE);
  }, [status, last, rows.length, loadMore]);

  function move(to: number): void {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setCurrent(next);
    virtual.scrollToIndex(next);
  }
  function toggle(id: string): void {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    onChoose(next);
  }
  function edit(id: string, name: string | undefined): void {
    if (onEdit !== null && name !== undefined && !name.startsWith("_")) setEditing({ id, name });
  }
  function leave(): void {
    setEditing(null);
    place.current?.focus();
  }
  function onKey(event: KeyboardEvent): void {
    const row = rows[current];
    const moves: Record<string, number> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + 20,
      PageUp: current - 20,
      Home: 0,
      End: rows.length - 1,
    };
    const to = moves[event.key];
    if (to !== undefined) move(to);
    else if (event.key === "ArrowRight") setColumn(Math.min(columns.length, column + 1));
    else if (event.key === "ArrowLeft") setColumn(Math.max(0, column - 1));
    else if (event.key === "F2" && row !== undefined) edit(row._id, columns[column - 1]);
    else if (event.key === "Enter" && row !== undefined) onOpen(row._id);
    else if (event.key === " " && row !== undefined) toggle(row._id);
    else return;
    event.preventDefault();
  }

  if (rows.length === 0) {
    return (
      <div className="grid">
        {status === "Exhausted" ? <Empty title="No documents" /> : <Loading />}
      </div>
    );
  }
  const properties = propertiesOf(table.schema);
  const active = rows[current];
  return (
    <div
      ref={place}
      className="grid"
      role="grid"
      aria-label={`Documents of ${table.name}`}
      aria-rowcount={status === "Exhausted" ? rows.length + 1 : -1}
      aria-multiselectable="true"
      aria-activedescendant={active === undefined
        ? undefined
        : column === 0
        ? `row-${active._id}`
        : `cell-${active._id}-${column}`}
      tabIndex={0}
      onKeyDown={onKey}
    >
      <div className="grid-row grid-head" role="row" aria-rowindex={1}>
        <span className="cell" role="columnheader">
          <span className="sr-only">Chosen</span>
        </span>
        {columns.map((name) => <span key={name} className="cell" role="columnheader">{name}</span>)}
      </div>
      <div className="grid-body" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
        {items.map(({ index, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          return (
            <div
              key={row._id}
              id={`row-${row._id}`}
              className="grid-row"
              role="row"
              aria-rowindex={index + 2}
              aria-selected={chosen.has(row._id)}
              data-current={index === current}
              data-changed={changed.has(row._id)}
              style={{ transform: `translateY(${start}px)` }}
              onClick={() => {
                setCurrent(index);
                onOpen(row._id);
              }}
            >
              <span className="cell check" role="gridcell" onClick={(event) => event.stopPropagation()}>
                <input
                  type="checkbox"
                  tabIndex={-1}
                  aria-label="Choose this document"
                  checked={chosen.has(row._id)}
                  onChange={() => toggle(row._id)}
                />
              </span>
              {columns.map((name, position) => (
                <span
                  key={name}
                  id={`cell-${row._id}-${position + 1}`}
                  className="cell"
                  role="gridcell"
                  data-current={index === current && position + 1 === column}
                >
                  {editing?.id === row._id && editing.name === name
                    ? (
                      <CellEditor
                        name={name}
                        schema={properties[name]}
                        value={row[name]}
                        onLeave={leave}
                        onBlur={() => setEditing(null)}
                        onStore={(value) => {
                          leave();
                          onEdit?.(row, { name, value });
                        }}
                      />
                    )
                    : (
                      <>
                        <Cell value={row[name]} name={name} schema={properties[name]} />
                        {onEdit !== null && !name.startsWith("_") && (
                          <button
                            type="button"
                            className="cell-edit"
                            tabIndex={-1}
                            aria-label={`Edit ${name}`}
                            onClick={(event) => {
                              event.stopPropagation();
                              setCurrent(index);
                              setColumn(position + 1);
                              edit(row._id, name);
                            }}
                          >
                            <Icon name="edit" />
                          </button>
                        )}
                      </>
                    )}
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function columnsOf({ schema }: TableOverview): readonly string[] {
  return ["_id", ...Object.keys(propertiesOf(schema)).slice(0, COLUMNS_MAX), "_creationTime"];
}

/** Ids of the rows that are other ones than at the last render: parts that did not change stay the same objects. */
function useChanged(rows: readonly Row[]): ReadonlySet<string> {
  const before = useRef(new Map<string, Row>());
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    const known = before.current;
    const now = rows.filter((row) => known.has(row._id) && known.get(row._id) !== row).map(({ _id }) => _id);
    before.current = new Map(rows.map((row) => [row._id, row]));
    setChanged(new Set(now));
  }, [rows]);
  return changed;
}
