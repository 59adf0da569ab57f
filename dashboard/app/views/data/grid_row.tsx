/** A document as a row of the grid. It is drawn anew only when something of its own changes. */
import { memo, useState } from "react";
import { Icon } from "../../ui/icon.tsx";
import { Cell } from "./cell.tsx";
import { CellEditor } from "./cell_editor.tsx";
import type { Schema } from "../../server/json_schema.ts";
import type { Row } from "./row.ts";

/** What all rows of a grid share; the same object as long as nothing of it changes. */
export interface GridRowShared {
  readonly columns: readonly string[];
  readonly properties: Readonly<Record<string, Schema>>;
  readonly onOpen: (position: number, id: string) => void;
  readonly onToggle: (row: Row) => void;
  /** Begins to edit a field; `null` where nothing may be changed. */
  readonly onEdit:
    | ((at: { readonly position: number; readonly column: number; readonly id: string }) => void)
    | null;
  /** The field is left: with a value to store, or with none. */
  readonly onLeave: (left: "key" | "blur") => void;
  readonly onStore: (row: Row, change: { readonly name: string; readonly value: unknown }) => void;
}

interface GridRowProps {
  readonly row: Row;
  readonly position: number;
  readonly top: number;
  readonly chosen: boolean;
  readonly changed: boolean;
  /** The column that is gone to, where the row is; 0 is the row as a whole. */
  readonly column: number | null;
  /** The field that is edited. */
  readonly editing: string | null;
  readonly shared: GridRowShared;
}

export const GridRow = memo(function GridRow(
  { row, position, top, chosen, changed, column, editing, shared }: GridRowProps,
) {
  // Only the row that is pointed at has the pens: a button in each cell would be most of what is drawn while scrolling.
  const [pointed, setPointed] = useState(false);
  const { columns, properties, onOpen, onToggle, onEdit, onLeave, onStore } = shared;
  return (
    <div
      id={`row-${row._id}`}
      className="grid-row"
      role="row"
      aria-rowindex={position + 2}
      aria-selected={chosen}
      data-current={column !== null}
      data-changed={changed}
      style={{ transform: `translateY(${top}px)` }}
      onPointerEnter={() => setPointed(true)}
      onPointerLeave={() => setPointed(false)}
      onClick={() => onOpen(position, row._id)}
    >
      <span className="cell check" role="gridcell" onClick={(event) => event.stopPropagation()}>
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label="Choose this document"
          checked={chosen}
          onChange={() => onToggle(row)}
        />
      </span>
      {columns.map((name, index) => (
        <span
          key={name}
          id={`cell-${row._id}-${index + 1}`}
          className="cell"
          role="gridcell"
          data-current={column === index + 1}
        >
          {editing === name
            ? (
              <CellEditor
                name={name}
                schema={properties[name]}
                value={row[name]}
                onLeave={() => onLeave("key")}
                onBlur={() => onLeave("blur")}
                onStore={(value) => {
                  onLeave("key");
                  onStore(row, { name, value });
                }}
              />
            )
            : (
              <>
                <Cell value={row[name]} name={name} schema={properties[name]} />
                {pointed && onEdit !== null && !name.startsWith("_") && (
                  <button
                    type="button"
                    className="cell-edit"
                    tabIndex={-1}
                    aria-label={`Edit ${name}`}
                    onClick={(event) => {
                      event.stopPropagation();
                      onEdit({ position, column: index + 1, id: row._id });
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
});
