/**
 * A small line chart, which shows the values of the time under the pointer, and events as vertical lines. It is plain SVG in
 * the theme's colours, because some hundred points do not justify a chart library.
 */
import { type MouseEvent, useId } from "react";
import { dayText, minuteText } from "./format.tsx";

export interface Series {
  readonly name: string;
  /** `null` for unknown values. */
  readonly values: readonly (number | null)[];
  readonly tone?: "accent" | "bad" | "warn" | "quiet";
}

/** An event. */
export interface Mark {
  readonly at: number;
  readonly text: string;
}

export interface ChartProps {
  readonly title: string;
  /** Time range in words, such as "over the last hour". */
  readonly text: string;
  readonly series: readonly Series[];
  /** Milliseconds since the epoch, one for each value. */
  readonly times: readonly number[];
  readonly marks: readonly Mark[];
  readonly format: (value: number) => string;
  /** Large value beside the title. Default: the newest value of the first series. */
  readonly now?: string;
  /** Index of the highlighted time, shared by all charts, or `null`. */
  readonly highlighted: number | null;
  readonly onHighlight: (position: number | null) => void;
  /** Returns the address of what the chart counts. The title leads to all of it, a click to that of one time. */
  readonly hrefOf?: (span: { readonly from: number; readonly to: number }) => string;
}

const WIDTH = 240;
const HEIGHT = 48;

const DAY_MS = 86_400_000;

export function Chart(
  { title, text, series, times, marks, format, now, highlighted, onHighlight, hrefOf }: ChartProps,
) {
  const id = useId();
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const step = times.length < 2 ? 0 : (last - first) / (times.length - 1);
  const isLong = last - first > DAY_MS;
  const dayOf = (at: number) => dayText(new Date(at)).slice(5);
  const timeOf = (at: number) => `${isLong ? `${dayOf(at)} ` : ""}${minuteText(new Date(at))}`;
  // A small chart has no space for day and time.
  const axisText = isLong ? dayOf : timeOf;
  const shownMarks = marks.map((mark) => ({ ...mark, position: step === 0 ? -1 : (mark.at - first) / step }))
    .filter(({ position }) => position >= 0 && position < times.length);
  const known = series.flatMap(({ values }) => values.filter((value) => value !== null));
  const most = Math.max(...known, 0) || 1;
  const x = (position: number) => times.length < 2 ? WIDTH : position / (times.length - 1) * WIDTH;
  const y = (value: number) => HEIGHT - 2 - value / most * (HEIGHT - 6);
  const newest = series[0]?.values.findLast((value) => value !== null) ?? null;
  const at = highlighted === null ? undefined : times[highlighted];
  const marksAt = shownMarks.filter(({ position }) => Math.floor(position) === highlighted);

  function positionOf({ clientX, currentTarget }: MouseEvent<SVGSVGElement>): number {
    const { left, width } = currentTarget.getBoundingClientRect();
    const position = Math.round((clientX - left) / width * (times.length - 1));
    return Math.max(0, Math.min(times.length - 1, position));
  }

  function open(event: MouseEvent<SVGSVGElement>): void {
    const from = times[positionOf(event)];
    if (hrefOf !== undefined && from !== undefined) location.hash = hrefOf({ from, to: from + step });
  }

  return (
    <figure className="chart" aria-labelledby={id}>
      <figcaption id={id}>
        <span className="grow quiet">
          {hrefOf === undefined ? title : <a href={hrefOf({ from: first, to: last + step })}>{title}</a>}
        </span>
        <strong>{now ?? (newest === null ? "–" : format(newest))}</strong>
      </figcaption>
      <div className="chart-plot">
        <span className="chart-most" aria-hidden="true">{known.length > 0 && format(most)}</span>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title} ${text}: ${
            known.length === 0 ? "no data yet" : `at most ${format(Math.max(...known))}`
          }`}
          onPointerMove={(event) => onHighlight(positionOf(event))}
          onClick={open}
          data-opens={hrefOf !== undefined || undefined}
          onPointerLeave={() => onHighlight(null)}
        >
          <line className="chart-base" x1="0" x2={WIDTH} y1={HEIGHT - 1} y2={HEIGHT - 1} />
          <line className="chart-base" x1="0" x2={WIDTH} y1="4" y2="4" />
          {shownMarks.map(({ at, position }) => (
            <line key={at} className="chart-mark" x1={x(position)} x2={x(position)} y1="0" y2={HEIGHT} />
          ))}
          {series.map(({ name, values, tone = "accent" }, position) => (
            <g key={name} data-tone={tone}>
              {position === 0 && <path className="chart-area" d={area(values, { x, y })} />}
              <path className="chart-line" d={line(values, { x, y })} />
              <path className="chart-dot" d={dots(values, { x, y })} />
            </g>
          ))}
          {highlighted !== null && (
            <line className="chart-at" x1={x(highlighted)} x2={x(highlighted)} y1="0" y2={HEIGHT} />
          )}
        </svg>
        <p className="chart-times" aria-hidden="true">
          {at === undefined
            ? (
              <>
                <span>{axisText(first)}</span>
                <span>{axisText((first + last) / 2)}</span>
                <span>{axisText(last)}</span>
              </>
            )
            : <span>{timeOf(at)} {textOf(marksAt)}</span>}
        </p>
      </div>
      <p className="chart-legend" data-several={series.length > 1 || undefined}>
        {at === undefined
          ? (
            <span className="quiet">
              <Names series={series} />
            </span>
          )
          : series.map(({ name, values, tone = "accent" }) => {
            const value = values[highlighted ?? 0] ?? null;
            return (
              <span key={name} data-tone={tone}>
                {series.length > 1 && `${name} `}
                {value === null ? "–" : format(value)}
              </span>
            );
          })}
      </p>
    </figure>
  );
}

/** The first event and the number of the others. */
function textOf([first, ...others]: readonly Mark[]): string {
  return first === undefined ? "" : `${first.text}${others.length === 0 ? "" : ` +${others.length}`}`;
}

function Names({ series }: { readonly series: readonly Series[] }) {
  return (
    <>
      {series.map(({ name, tone = "accent" }) => (
        <span key={name} className="key" data-tone={tone}>{name}</span>
      ))}
    </>
  );
}

interface Scales {
  readonly x: (position: number) => number;
  readonly y: (value: number) => number;
}

/** Path of a line with gaps at unknown values. */
function line(values: readonly (number | null)[], { x, y }: Scales): string {
  let path = "";
  let open = false;
  for (const [position, value] of values.entries()) {
    if (value === null) {
      open = false;
      continue;
    }
    path += `${open ? "L" : "M"}${x(position).toFixed(1)} ${y(value).toFixed(1)}`;
    open = true;
  }
  return path;
}

/** Path of isolated values, which a line would not show. */
function dots(values: readonly (number | null)[], { x, y }: Scales): string {
  const known = (position: number) => (values[position] ?? null) !== null;
  return values.map((value, position) => {
    if (value === null || known(position - 1) || known(position + 1)) return "";
    return `M${Math.min(x(position), WIDTH - 3).toFixed(1)} ${y(value).toFixed(1)}h.1`;
  }).join("");
}

function area(values: readonly (number | null)[], { x, y }: Scales): string {
  let path = "";
  let start: number | null = null;
  for (const [position, value] of [...values, null].entries()) {
    if (value !== null) {
      path += `${start === null ? `M${x(position).toFixed(1)} ${HEIGHT}L` : "L"}${x(position).toFixed(1)} ${
        y(value).toFixed(1)
      }`;
      start ??= position;
    } else if (start !== null) {
      path += `L${x(position - 1).toFixed(1)} ${HEIGHT}Z`;
      start = null;
    }
  }
  return path;
}
