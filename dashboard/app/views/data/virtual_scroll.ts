/**
 * Virtual scrolling beyond the maximum element height of browsers. The scrolled element is shorter than all rows together:
 * small scroll steps move by pixels, large ones jump to the same fraction of the list.
 */
import { type RefObject, useLayoutEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";

export const ROW_PX = 34;
/** Browsers limit element heights to 16 to 33 million pixels. */
const HEIGHT_MAX = 8_000_000;
/** Distance from an edge at which the offset is adjusted, so that scrolling never ends before the rows do. */
const EDGE_PX = 4_000;
/** Rows are rendered in steps, so that not every pixel causes a render. */
const STEP = 4;
/** Overscan rows on either side of the viewport. */
const OVERSCAN = 12;

export interface VirtualScroll {
  readonly height: number;
  /** Offset between a row's position in pixels and its place in the scrolled element. */
  readonly shift: number;
  /** Positions of the rows to render: `first` inclusive, `last` exclusive. */
  readonly first: number;
  readonly last: number;
  /** Positions of the rows in view. */
  readonly seen: readonly [first: number, last: number];
  readonly onScroll: () => void;
  /** Scrolls a row into view. */
  readonly show: (position: number) => void;
}

interface View {
  readonly first: number;
  readonly last: number;
  readonly shift: number;
}

export function useVirtualScroll(place: RefObject<HTMLElement | null>, rows: number): VirtualScroll {
  const whole = rows * ROW_PX;
  const height = Math.min(whole, HEIGHT_MAX);
  const shift = useRef(0);
  const top = useRef(0);
  const [view, setView] = useState<View>({ first: 0, last: 40, shift: 0 });

  /** Visible height without the sticky header. */
  const seen = () => Math.max(ROW_PX, (place.current?.clientHeight ?? 0) - ROW_PX);

  function draw(): void {
    const at = Math.floor((top.current + shift.current) / ROW_PX / STEP) * STEP;
    const first = Math.max(0, at - OVERSCAN);
    const last = Math.min(rows, at + Math.ceil(seen() / ROW_PX) + STEP + OVERSCAN);
    const now = { first, last, shift: shift.current };
    setView((before) =>
      before.first === now.first && before.last === now.last && before.shift === now.shift ? before : now
    );
  }

  /** Jumps to a distance from the first row, at the same fraction of the scrolled element. */
  function go(pixels: number): void {
    const element = place.current;
    if (element === null) return;
    const target = Math.max(0, Math.min(pixels, whole - seen()));
    const share = whole > seen() ? target / (whole - seen()) : 0;
    element.scrollTop = height === whole ? target : Math.round(share * (height - seen()));
    top.current = element.scrollTop;
    shift.current = Math.max(0, Math.min(whole - height, target - top.current));
    draw();
  }

  function onScroll(): void {
    const element = place.current;
    if (element === null) return;
    const step = Math.abs(element.scrollTop - top.current);
    top.current = element.scrollTop;
    const room = whole - height;
    const end = height - seen();
    const jumped = step > 2 * seen();
    if (room > 0 && jumped) {
      shift.current = room * Math.min(1, top.current / end);
    } else if (
      room > 0 &&
      (top.current < EDGE_PX && shift.current > 0 || top.current > end - EDGE_PX && shift.current < room)
    ) {
      return go(top.current + shift.current);
    }
    // After a jump nothing rendered is in view, so render in the same frame.
    if (jumped) flushSync(draw);
    else draw();
  }

  function show(position: number): void {
    const now = top.current + shift.current;
    const at = position * ROW_PX;
    if (at >= now && at + ROW_PX <= now + seen()) return;
    const wanted = at < now ? at : at + ROW_PX - seen();
    const element = place.current;
    const near = wanted - shift.current;
    if (element === null || Math.abs(wanted - now) > 2 * seen() || near < 0 || near > height - seen()) {
      return go(wanted);
    }
    element.scrollTop = near;
    onScroll();
  }

  useLayoutEffect(() => {
    shift.current = Math.min(shift.current, Math.max(0, whole - height));
    draw();
    const element = place.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => draw());
    observer.observe(element);
    return () => observer.disconnect();
  }, [rows]);

  const last = Math.min(view.last, rows);
  const highest = Math.floor((top.current + shift.current) / ROW_PX);
  // A pixel of tolerance, because browsers round the scroll position.
  const lowest = Math.floor((top.current + shift.current + seen() + 1) / ROW_PX);
  const seenRows = [highest, Math.min(rows, lowest)] as const;
  return { height, ...view, last, seen: seenRows, onScroll, show };
}
