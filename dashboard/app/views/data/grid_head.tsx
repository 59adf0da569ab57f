/** The head of the grid: a column's name sorts by it, and its right edge resizes it. */
import type { PointerEvent } from "react";

export interface GridOrder {
  /** The field that orders the rows; `null` for search results. */
  readonly field: string | null;
  readonly descending: boolean;
  /** Whether an index can order the rows by a field. */
  readonly isSortable: (field: string) => boolean;
  /** Orders by a field, or reverses the order. */
  readonly onSort: (field: string) => void;
}

export interface HeadCellProps {
  readonly name: string;
  readonly order: GridOrder;
  readonly isNumber: boolean;
  readonly onResize: (width: number) => void;
}

/** A column's name. The select beside the filters orders by keyboard, and the dialog of the columns resizes. */
export function HeadCell({ name, order, isNumber, onResize }: HeadCellProps) {
  const { field, descending, isSortable, onSort } = order;
  const sorted = field === name;
  return (
    <span
      className={cellClass(isNumber)}
      role="columnheader"
      aria-sort={sorted ? descending ? "descending" : "ascending" : undefined}
      title={isSortable(name) ? undefined : `An index on ${name} would allow sorting by it`}
    >
      {isSortable(name)
        ? (
          <button type="button" className="sort" tabIndex={-1} onClick={() => onSort(name)}>
            {name}
          </button>
        )
        : name}
      <ResizeHandle onResize={onResize} />
    </span>
  );
}

export function cellClass(isNumber: boolean): string {
  return isNumber ? "cell number" : "cell";
}

/** The right edge of a column, which is dragged. */
function ResizeHandle({ onResize }: Pick<HeadCellProps, "onResize">) {
  function drag(event: PointerEvent<HTMLSpanElement>): void {
    const handle = event.currentTarget;
    if (event.buttons !== 1 || !handle.hasPointerCapture(event.pointerId)) return;
    const { left } = handle.parentElement?.getBoundingClientRect() ?? { left: 0 };
    onResize(event.clientX - left);
  }
  return (
    <span
      className="resize"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={drag}
    />
  );
}
