/** Charts of the last hour, day or week that highlight the same time together, with deploys marked. */
import { useMemo, useState } from "react";
import type { TrendPoint } from "../../../../mod/ops/stats/trend.ts";
import { ERRORS } from "../../server/outcomes.ts";
import type { Stats } from "../../server/stats.ts";
import { href, replace, useRoute } from "../../shell/route.ts";
import { Chart, type ChartProps, type Mark } from "../../ui/chart.tsx";
import { count, duration, size, tenths } from "../../ui/format.tsx";
import { useRequest } from "../../ui/use_request.tsx";

const MINUTE_MS = 60_000;
const MINUTES = 60;

interface Trend {
  readonly at: number;
  readonly everyMs: number;
  readonly points: readonly TrendPoint[];
}

const RANGES = [
  { name: "", title: "1 h", text: "over the last hour", hours: 1 },
  { name: "day", title: "24 h", text: "over the last 24 hours", hours: 24 },
  { name: "week", title: "7 d", text: "over the last 7 days", hours: 168 },
] as const;

export function Charts({ stats }: { readonly stats: Stats }) {
  const { search } = useRoute();
  const range = RANGES.find(({ name }) => name === search.get("range")) ?? RANGES[0];
  return (
    <section className="stack" aria-label="Activity">
      <div className="tabs" role="group" aria-label="Time range of the charts">
        {RANGES.map(({ name, title }) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === range.name}
            onClick={() => replace(["overview"], { range: name })}
          >
            {title}
          </button>
        ))}
      </div>
      {range.hours === 1
        ? <Grid points={minutePoints(stats)} stats={stats} text={range.text} />
        : <Longer key={range.name} {...range} stats={stats} />}
    </section>
  );
}

/** The trend grows once in a quarter of an hour. */
const TREND_EVERY_MS = 60_000;

function Longer({ stats, text, hours }: {
  readonly stats: Stats;
  readonly text: string;
  readonly hours: number;
}) {
  const { value, error } = useRequest<Trend>(`/api/admin/stats/trend?hours=${hours}`, TREND_EVERY_MS);
  if (error !== null) return <p className="field-error" role="alert">{error}</p>;
  const trend = value ?? { at: stats.at, everyMs: 15 * MINUTE_MS, points: [] };
  return <Grid points={trendPoints(trend, hours)} stats={stats} text={text} />;
}

/** One position of the charts. */
interface Point {
  readonly at: number;
  /** Length, shorter for a position that is growing. */
  readonly minutes: number;
  readonly runs: Stats["history"][number] | null;
  readonly gauges: Omit<Stats["gauges"][number], "at"> | null;
}

const NOTHING = { p50: null, p95: null, p99: null };
const noRuns = (at: number): Stats["history"][number] => ({
  ...{ at, calls: 0, errors: 0, cacheHits: 0, mutations: 0, runMs: NOTHING, commitMs: NOTHING },
});

function minutePoints({ at, startedAt, history, gauges }: Stats): readonly Point[] {
  const end = Math.floor(at / MINUTE_MS) * MINUTE_MS;
  const runs = new Map(history.map((minute) => [minute.at, minute]));
  const gaugesAt = new Map(gauges.map((gauges) => [gauges.at, gauges]));
  const since = Math.min(history[0]?.at ?? Infinity, Math.floor(startedAt / MINUTE_MS) * MINUTE_MS);
  return Array.from({ length: MINUTES }, (_, position) => {
    const time = end - (MINUTES - 1 - position) * MINUTE_MS;
    return {
      at: time,
      minutes: 1,
      // A minute without an entry has no runs, or is unknown before counting started.
      runs: runs.get(time) ?? (time < since ? null : noRuns(time)),
      gauges: gaugesAt.get(time) ?? null,
    };
  });
}

function trendPoints({ at, everyMs, points }: Trend, hours: number): readonly Point[] {
  const length = hours * 60 * MINUTE_MS / everyMs;
  const end = Math.floor(at / everyMs) * everyMs;
  const known = new Map(points.map((point) => [point.at, point]));
  return Array.from({ length }, (_, position) => {
    const time = end - (length - 1 - position) * everyMs;
    const point = known.get(time) ?? null;
    const minutes = Math.max(1, Math.min(everyMs, at - time) / MINUTE_MS);
    return { at: time, minutes, runs: point, gauges: point?.gauges ?? null };
  });
}

interface Versions {
  readonly versions: readonly { readonly hash: string; readonly deployedAt: number }[];
}

function useDeploys(): readonly Mark[] {
  const { value } = useRequest<Versions>("/api/admin/functions/versions");
  return useMemo(
    () =>
      (value?.versions ?? []).map(({ hash, deployedAt: at }) => ({ at, text: `deploy ${hash.slice(0, 7)}` })),
    [value],
  );
}

function Grid({ points, stats, text }: {
  readonly points: readonly Point[];
  readonly stats: Stats;
  readonly text: string;
}) {
  const [highlighted, setHighlighted] = useState<number | null>(null);
  const marks = useDeploys();
  const charts = useMemo(() => chartsOf(points, stats), [points, stats]);
  return (
    <div className="charts">
      {charts.map((chart) => (
        <Chart
          key={chart.title}
          {...chart}
          text={text}
          marks={marks}
          highlighted={highlighted}
          onHighlight={setHighlighted}
        />
      ))}
    </div>
  );
}

function hrefOfRuns({ from, to }: { readonly from: number; readonly to: number }, outcome = ""): string {
  return href(["logs"], { outcome, from: String(from), to: String(to) });
}

type ChartOf = Omit<ChartProps, "highlighted" | "marks" | "onHighlight" | "text">;

function chartsOf(points: readonly Point[], { sync, memory, disk }: Stats): readonly ChartOf[] {
  const times = points.map(({ at }) => at);
  const counter = (of: (runs: NonNullable<Point["runs"]>) => number) =>
    points.map(({ runs, minutes }) => runs === null ? null : of(runs) / minutes);
  const measure = (of: (runs: NonNullable<Point["runs"]>) => number | null) =>
    points.map(({ runs }) => runs === null ? null : of(runs));
  /** The last point is the current value. */
  const gauge = (of: (gauges: NonNullable<Point["gauges"]>) => number | null, now: number | null) =>
    points.map(({ gauges }, position) =>
      position === points.length - 1 ? now : gauges === null ? null : of(gauges)
    );
  const perMinute = (value: number) => `${value < 10 ? tenths(value) : count(Math.round(value))}/min`;
  const memoryNow = Object.values(memory.isolates ?? {}).reduce((sum, bytes) => sum + bytes, memory.main);
  const charts: readonly Omit<ChartOf, "times">[] = [
    {
      title: "Calls",
      series: [{ name: "runs", values: counter(({ calls }) => calls) }, {
        name: "cached",
        values: counter(({ cacheHits }) => cacheHits),
        tone: "quiet",
      }],
      format: perMinute,
      hrefOf: (span) => hrefOfRuns(span),
    },
    {
      title: "Errors",
      series: [{ name: "errors", values: counter(({ errors }) => errors), tone: "bad" }],
      format: perMinute,
      hrefOf: (span) => hrefOfRuns(span, ERRORS),
    },
    {
      title: "Latency",
      series: [{ name: "p50", values: measure(({ runMs }) => runMs.p50) }, {
        name: "p95",
        values: measure(({ runMs }) => runMs.p95),
        tone: "quiet",
      }, { name: "p99", values: measure(({ runMs }) => runMs.p99), tone: "warn" }],
      format: duration,
    },
    {
      title: "Commits",
      series: [{ name: "mutations", values: counter(({ mutations }) => mutations) }],
      format: perMinute,
    },
    {
      title: "Sockets",
      series: [{ name: "sockets", values: gauge(({ sockets }) => sockets, sync.sockets) }],
      format: count,
    },
    {
      title: "Subscriptions",
      series: [{
        name: "subscriptions",
        values: gauge(({ subscriptions }) => subscriptions, sync.subscriptions),
      }],
      format: count,
    },
    {
      title: "Memory",
      series: [{ name: "memory", values: gauge(({ memory }) => memory, memoryNow) }],
      format: size,
    },
    {
      title: "Disk",
      series: [{
        name: "database and log",
        values: gauge(({ stored }) => stored, disk.database + disk.log),
      }],
      format: size,
      ...(disk.free !== null && { now: `${size(disk.free)} free` }),
    },
  ];
  return charts.map((chart) => ({ ...chart, times }));
}
