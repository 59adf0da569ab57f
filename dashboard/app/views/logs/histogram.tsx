/** Histogram of runs over time by outcome, with deploys and rollbacks. Dragging, or Shift with the arrow keys, selects the time filter. */
import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from "react";
import { href } from "../../shell/route.ts";
import { count, timeText, utcText } from "../../ui/format.tsx";
import { type Bar, OUTCOME_LABELS, OUTCOMES, type RunOutcome } from "./use_logs.ts";
import type { ServedTime } from "./versions.ts";

export interface RunHistogramProps {
  readonly bars: readonly Bar[];
  /** Deploys and rollbacks, oldest first. */
  readonly served: readonly ServedTime[];
  readonly onChoose: (span: { readonly from: number; readonly to: number }) => void;
}

/** Space for a name below the bars, in pixels. */
const NAME_PX = 84;
/** Width of the bars until it is measured. */
const WIDTH_PX = 1_000;

interface Marker {
  readonly deploy: ServedTime;
  /** Position of its line, in percent of the width. */
  readonly left: number;
  /** Deploys that its name covers, newest first. Empty if its name would overlap that of a later deploy. */
  readonly named: readonly ServedTime[];
  /** Whether its name is to the left of its line, at the right edge. */
  readonly isLeft: boolean;
}

/** Places the names of deploys, oldest first, from right to left. A name also covers earlier deploys without enough space. */
function markersOf(
  deploys: readonly ServedTime[],
  { start, end, width }: { readonly start: number; readonly end: number; readonly width: number },
): readonly Marker[] {
  const space = 100 * NAME_PX / width;
  const markers: Marker[] = [];
  /** Start of the names placed so far. */
  let taken = 100;
  for (const deploy of deploys.toReversed()) {
    const left = 100 * (deploy.from - start) / (end - start);
    const last = markers.findLastIndex(({ named }) => named.length > 0);
    const owner = markers[last];
    const isLeft = owner === undefined && left + space > 100;
    if (owner !== undefined && left + space > taken) {
      markers[last] = { ...owner, named: [...owner.named, deploy] };
      markers.push({ deploy, left, named: [], isLeft });
    } else {
      markers.push({ deploy, left, named: [deploy], isLeft });
      taken = isLeft ? left - space : left;
    }
  }
  return markers.toReversed();
}

/** Drawn from the bottom to the top, so that failures are above. */
const STACK = OUTCOMES.toReversed();

function totalOf(bars: readonly Bar[], outcome: RunOutcome): number {
  return bars.reduce((sum, { runs }) => sum + (runs[outcome] ?? 0), 0);
}

const sumOf = ({ runs }: Bar): number => Object.values(runs).reduce((sum, count) => sum + count, 0);

export function RunHistogram({ bars, served, onChoose }: RunHistogramProps) {
  const place = useRef<HTMLDivElement>(null);
  /** Highlighted bar; `null` shows the totals of all bars. */
  const [current, setCurrent] = useState<number | null>(null);
  /** Start of the selection while selecting. */
  const [anchor, setAnchor] = useState<number | null>(null);
  const [width, setWidth] = useState(WIDTH_PX);
  const isEmpty = bars.length === 0;
  useEffect(() => {
    if (place.current === null) return;
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width || WIDTH_PX));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, [isEmpty]);
  if (isEmpty) return null;
  const at = Math.min(current ?? bars.length - 1, bars.length - 1);
  const [first, last] = anchor === null ? [at, at] : [Math.min(anchor, at), Math.max(anchor, at)];
  const most = Math.max(1, ...bars.map(sumOf));
  const [start, end] = [bars[0]?.from ?? 0, bars.at(-1)?.to ?? 0];
  const markers = markersOf(served.filter(({ from }) => from >= start && from < end), { start, end, width });

  function choose(): void {
    const [from, to] = [bars[first]?.from, bars[last]?.to];
    setAnchor(null);
    if (from !== undefined && to !== undefined) onChoose({ from, to });
  }

  function positionOf({ clientX }: PointerEvent): number {
    const { left, width } = place.current?.getBoundingClientRect() ?? { left: 0, width: 1 };
    const position = Math.floor((clientX - left) / width * bars.length);
    return Math.max(0, Math.min(bars.length - 1, position));
  }

  function onKey(event: KeyboardEvent): void {
    const moves: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      Home: 0,
      End: bars.length - 1,
    };
    const to = moves[event.key];
    if (to !== undefined) {
      if (event.shiftKey) setAnchor(anchor ?? at);
      else setAnchor(null);
      setCurrent(Math.max(0, Math.min(bars.length - 1, to)));
    } else if (event.key === "Enter" || event.key === " ") choose();
    else return;
    event.preventDefault();
  }

  const chosen = current === null ? bars : bars.slice(first, last + 1);
  const shown = OUTCOMES.map((outcome) => ({ outcome, runs: totalOf(chosen, outcome) }));
  const found = shown.filter(({ runs }) => runs > 0);
  const totals = [
    `${count(chosen.reduce((sum, bar) => sum + sumOf(bar), 0))} runs`,
    ...found.filter(({ outcome }) => outcome !== "success")
      .map(({ outcome, runs }) => `${count(runs)} ${OUTCOME_LABELS[outcome]}`),
  ].join(", ");
  const span = `${timeText(chosen[0]?.from ?? 0)} – ${timeText(chosen.at(-1)?.to ?? 0)}`;
  return (
    <div className="histogram">
      <div
        ref={place}
        className="bars"
        role="slider"
        tabIndex={0}
        aria-label="Runs over time. Arrow keys move, Shift with arrow keys selects a range, Enter filters by it."
        aria-valuemin={0}
        aria-valuemax={bars.length - 1}
        aria-valuenow={at}
        aria-valuetext={`${totals}, ${span}`}
        onKeyDown={onKey}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          const position = positionOf(event);
          setAnchor(position);
          setCurrent(position);
        }}
        onPointerMove={(event) => setCurrent(positionOf(event))}
        onPointerUp={choose}
        onPointerCancel={() => setAnchor(null)}
        onPointerLeave={() => anchor === null && setCurrent(null)}
        onBlur={() => setCurrent(null)}
      >
        {bars.map((bar, position) => (
          <span
            key={bar.from}
            className="bar"
            data-chosen={current !== null && position >= first && position <= last}
          >
            {STACK.map((outcome) =>
              (bar.runs[outcome] ?? 0) > 0 && (
                <span
                  key={outcome}
                  data-outcome={outcome}
                  style={{ height: `${100 * (bar.runs[outcome] ?? 0) / most}%` }}
                />
              )
            )}
          </span>
        ))}
      </div>
      {markers.length > 0 && (
        <ul className="deploys" aria-label="Deploys">
          {markers.map(({ deploy: { hash, from }, left, named, isLeft }) => (
            <li
              key={from}
              data-left={isLeft && named.length > 0 || undefined}
              style={isLeft ? { right: `${100 - left}%` } : { left: `${left}%` }}
            >
              {named.length > 0 && (
                <a
                  href={href(["versions", ...named.length === 1 ? [hash] : []])}
                  title={named.map(({ hash, from }) => `${hash.slice(0, 7)} served from ${timeText(from)}`)
                    .join("\n")}
                >
                  {hash.slice(0, 7)}
                  {named.length > 1 && ` +${named.length - 1}`}
                </a>
              )}
            </li>
          ))}
        </ul>
      )}
      <p className="row quiet small">
        <span title={utcText(bars[0]?.from ?? 0)}>{timeText(bars[0]?.from ?? 0)}</span>
        <span className="grow" />
        <span aria-hidden="true">
          {found.map(({ outcome, runs }) => (
            <span key={outcome} className="outcome" data-outcome={outcome}>
              {OUTCOME_LABELS[outcome]} {count(runs)}
            </span>
          ))}
          {current !== null && span}
        </span>
        <span className="grow" />
        <span title={utcText(bars.at(-1)?.to ?? 0)}>{timeText(bars.at(-1)?.to ?? 0)}</span>
      </p>
    </div>
  );
}
