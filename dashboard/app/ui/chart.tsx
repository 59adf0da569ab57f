/**
 * A small line chart of the last hour, which shows the values of the minute under the pointer. It is plain SVG in the theme's
 * colours, because sixty points do not justify a chart library.
 */
import { type PointerEvent, useId } from "react";
import { minuteText } from "./format.tsx";

export interface Series {
  readonly name: string;
  /** `null` for unknown values. */
  readonly values: readonly (number | null)[];
  readonly tone?: "accent" | "bad" | "warn" | "quiet";
}

export interface ChartProps {
  readonly title: string;
  readonly series: readonly Series[];
  /** Milliseconds since the epoch, one for each value. */
  readonly times: readonly number[];
  readonly format: (value: number) => string;
  /** Large value beside the title. Default: the newest value of the first series. */
  readonly now?: string;
  /** Index of the highlighted minute, shared by all charts, or `null`. */
  readonly highlighted: number | null;
  readonly onHighlight: (position: number | null) => void;
}

const WIDTH = 240;
const HEIGHT = 48;

export function Chart({ title, series, times, format, now, highlighted, onHighlight }: ChartProps) {
  const id = useId();
  const known = series.flatMap(({ values }) => values.filter((value) => value !== null));
  const most = Math.max(...known, 0) || 1;
  const x = (position: number) => times.length < 2 ? WIDTH : position / (times.length - 1) * WIDTH;
  const y = (value: number) => HEIGHT - 2 - value / most * (HEIGHT - 6);
  const newest = series[0]?.values.findLast((value) => value !== null) ?? null;
  const at = highlighted === null ? undefined : times[highlighted];

  function point({ clientX, currentTarget }: PointerEvent<SVGSVGElement>): void {
    const { left, width } = currentTarget.getBoundingClientRect();
    const position = Math.round((clientX - left) / width * (times.length - 1));
    onHighlight(Math.max(0, Math.min(times.length - 1, position)));
  }

  return (
    <figure className="chart" aria-labelledby={id}>
      <figcaption id={id}>
        <span className="grow quiet">{title}</span>
        <strong>{now ?? (newest === null ? "–" : format(newest))}</strong>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title} over the last hour: ${
          known.length === 0 ? "no data yet" : `at most ${format(Math.max(...known))}`
        }`}
        onPointerMove={point}
        onPointerLeave={() => onHighlight(null)}
      >
        <line className="chart-base" x1="0" x2={WIDTH} y1={HEIGHT - 1} y2={HEIGHT - 1} />
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
      <p className="chart-legend">
        {at === undefined
          ? <span className="quiet">{series.length > 1 && <Names series={series} />}</span>
          : (
            <>
              {minuteText(new Date(at))} {series.map(({ name, values, tone = "accent" }) => {
                const value = values[highlighted ?? 0] ?? null;
                return (
                  <span key={name} data-tone={tone}>
                    {series.length > 1 && `${name} `}
                    {value === null ? "–" : format(value)}
                  </span>
                );
              })}
            </>
          )}
      </p>
    </figure>
  );
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
