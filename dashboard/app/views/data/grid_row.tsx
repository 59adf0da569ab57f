/** A document as a row of the grid. Memoized to re-render only when its own props change. */
import { type KeyboardEvent, memo, useState } from "react";
import { choicesOf, plainOf, type Schema } from "../../server/json_schema.ts";
import { parseJson } from "../../server/json_text.ts";
import { Icon } from "../../ui/controls.tsx";
import { Cell } from "./cell.tsx";
import { cellClass } from "./grid_head.tsx";
import type { Labels } from "./labels.ts";

export interface CellEditorProps {
  readonly name: string;
  readonly schema: Schema | undefined;
  readonly value: unknown;
  /** Called with the new value, where `undefined` removes the field, and the value that the user saw. */
  readonly onSave: (value: unknown, seen: unknown) => void;
  /** Called on Escape. */
  readonly onCancel: () => void;
  /** Called when the focus leaves the editor. */
  readonly onBlur: () => void;
}

/** Inline editor of one field in the grid. Enter saves, Escape cancels. */
function CellEditor({ name, schema = {}, value, onSave, onCancel, onBlur }: CellEditorProps) {
  const plain = plainOf(schema);
  const ofText = plain["type"] === "string";
  const choices = choicesOf(schema) ?? (plain["type"] === "boolean" ? [true, false] : null);
  const [text, setText] = useState(() =>
    value === undefined ? "" : ofText && typeof value === "string" ? value : JSON.stringify(value)
  );
  const [wrong, setWrong] = useState(false);
  // The value when editing started, to detect conflicts.
  const [seen] = useState(value);

  function onKey(event: KeyboardEvent): void {
    // Keep the grid from handling these keys.
    event.stopPropagation();
    if (event.key === "Escape") onCancel();
    if (event.key !== "Enter") return;
    event.preventDefault();
    const entered = enteredValue(text, ofText);
    if (entered.ok) onSave(entered.value, seen);
    else setWrong(true);
  }

  const common = {
    className: "input cell-input",
    "aria-label": `New value of ${name}`,
    autoFocus: true,
    onKeyDown: onKey,
    onBlur,
    onClick: (event: { stopPropagation(): void }) => event.stopPropagation(),
  };
  if (choices !== null) {
    return (
      <select
        {...common}
        value={JSON.stringify(value)}
        onChange={(event) => onSave(JSON.parse(event.target.value), value)}
      >
        {!choices.includes(value) && (
          <option value={JSON.stringify(value)}>{JSON.stringify(value) ?? "–"}</option>
        )}
        {choices.map((choice) => (
          <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>{String(choice)}</option>
        ))}
      </select>
    );
  }
  return (
    <input
      {...common}
      aria-invalid={wrong || undefined}
      title={wrong ? "Invalid JSON" : undefined}
      value={text}
      spellCheck={false}
      onChange={(event) => {
        setText(event.target.value);
        setWrong(false);
      }}
    />
  );
}

type Entered = { readonly ok: true; readonly value: unknown } | { readonly ok: false };

/** Parses the input: taken literally for string fields, otherwise as JSON. An empty input removes the field. */
function enteredValue(text: string, ofText: boolean): Entered {
  if (ofText) return { ok: true, value: text };
  if (text.trim() === "") return { ok: true, value: undefined };
  try {
    return { ok: true, value: parseJson(text) };
  } catch {
    return { ok: false };
  }
}

/** A document as the grid shows it. */
export type Row = Readonly<Record<string, unknown>> & {
  readonly _id: string;
  readonly _creationTime: number;
};

/** Props shared by all rows, with a stable identity. */
export interface GridRowShared {
  readonly columns: readonly string[];
  /** First columns that stay while scrolling sideways. */
  readonly frozen: number;
  readonly properties: Readonly<Record<string, Schema>>;
  /** Names of the number fields, which are right-aligned. */
  readonly numbers: ReadonlySet<string>;
  /** Names of the fields that refer to documents. */
  readonly references: readonly string[];
  /** Opens a row, or a document that one refers to, whose position is `null`. */
  readonly onOpen: (position: number | null, id: string) => void;
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
  readonly labels: Labels;
  readonly shared: GridRowShared;
}

export const GridRow = memo(function GridRow(
  { row, position, top, selected, changed, column, editing, labels, shared }: GridRowProps,
) {
  // Render edit buttons only in the hovered row: one per cell would dominate rendering while scrolling.
  const [pointed, setPointed] = useState(false);
  const { columns, frozen, properties, numbers, onOpen, onToggle, onEdit, onLeave, onStore } = shared;
  const cells = columns.map((name, index) => (
    <span
      key={name}
      id={`cell-${row._id}-${index + 1}`}
      className={cellClass(numbers.has(name))}
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
            onSave={(value, seen) => {
              onLeave("key");
              onStore({ ...row, [name]: seen }, { name, value });
            }}
          />
        )
        : (
          <>
            <Cell
              value={row[name]}
              name={name}
              schema={properties[name]}
              labels={labels}
              onOpen={(id) => onOpen(null, id)}
            />
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
  ));
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
      <div className="frozen" role="none">
        <span className="cell check" role="gridcell" onClick={(event) => event.stopPropagation()}>
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label="Select this document"
            checked={selected}
            onChange={() => onToggle(row)}
          />
        </span>
        {cells.slice(0, frozen)}
      </div>
      {cells.slice(frozen)}
    </div>
  );
});
