/** Rows that are still to come: their numbers, as they are scrolled past, and bars where their fields will stand. */
import { memo } from "react";
import { count } from "../../ui/texts.tsx";
import { ROW_PX } from "./tall_scroll.ts";

interface PendingRowsProps {
  /** Positions: from the first up to but not including the last. */
  readonly first: number;
  readonly last: number;
  /** How much higher rows stand than at their positions. */
  readonly shift: number;
}

export const PendingRows = memo(function PendingRows({ first, last, shift }: PendingRowsProps) {
  // By their place in the page: while it is dragged the elements stay, and only say something else.
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
