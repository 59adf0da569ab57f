/** A document as a row of the grid. Memoized to re-render only when its own props change. */
import { memo, useState } from "react";
import { Icon } from "../../ui/icon.tsx";
import { Cell } from "./cell.tsx";
import { CellEditor } from "./cell_editor.tsx";
import type { Schema } from "../../server/json_schema.ts";
import type { Row } from "./row.ts";

/** Props shared by all rows, with a stable identity. */
export interface GridRowShared {
  readonly columns: readonly string[];
  readonly properties: Readonly<Record<string, Schema>>;
  readonly onOpen: (position: number, id: string) => void;
  readonly onToggle: (row: Row) => void;
  /** Starts editing a field; `null` if the table is read-only. */
  readonly onEdit:
    | ((at: { readonly position: number; readonly column: number; readonly id: string }) => void)
    | null;
  /** Ends editing without saving. */
  readonly onLeave: (left: "key" | "blur") => void;
  readonly onStore: (row: Row, change: { readonly name: string; readonly value: unknown }) => void;
}

interface GridRowProps {
  readonly row: Row;
  readonly position: number;
  readonly top: number;
  readonly selected: boolean;
  readonly changed: boolean;
  /** Current column if this is the current row; 0 selects the whole row. */
  readonly column: number | null;
  /** Name of the field being edited. */
  readonly editing: string | null;
  readonly shared: GridRowShared;
}

export const GridRow = memo(function GridRow(
  { row, position, top, selected, changed, column, editing, shared }: GridRowProps,
) {
  // Render edit buttons only in the hovered row: one per cell would dominate rendering while scrolling.
  const [pointed, setPointed] = useState(false);
  const { columns, properties, onOpen, onToggle, onEdit, onLeave, onStore } = shared;
  return (
    <div
      id={`row-${row._id}`}
      className="grid-row"
      role="row"
      aria-rowindex={position + 2}
      aria-selected={selected}
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
          aria-label="Select this document"
          checked={selected}
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
                onCancel={() => onLeave("key")}
                onBlur={() => onLeave("blur")}
                onSave={(value) => {
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
