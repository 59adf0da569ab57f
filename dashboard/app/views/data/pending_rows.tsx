/** Placeholders of rows that are not loaded yet, with row numbers. */
import { memo } from "react";
import { count } from "../../ui/format.tsx";
import { ROW_PX } from "./virtual_scroll.ts";

interface PendingRowsProps {
  /** Positions: `first` inclusive, `last` exclusive. */
  readonly first: number;
  readonly last: number;
  /** Offset between a row's position in pixels and its place in the scrolled element. */
  readonly shift: number;
}

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
