/** Charts of the last hour that highlight the same minute together. */
import { useMemo, useState } from "react";
import type { Stats } from "../../server/stats.ts";
import { Chart, type ChartProps } from "../../ui/chart.tsx";
import { count, duration, size } from "../../ui/format.tsx";

const MINUTE_MS = 60_000;
const MINUTES = 60;

export function LastHour({ stats }: { readonly stats: Stats }) {
  const [highlighted, setHighlighted] = useState<number | null>(null);
  const charts = useMemo(() => chartsOf(stats), [stats]);
  return (
    <div className="charts">
      {charts.map((chart) => (
        <Chart key={chart.title} {...chart} highlighted={highlighted} onHighlight={setHighlighted} />
      ))}
    </div>
  );
}

type ChartOf = Omit<ChartProps, "highlighted" | "onHighlight">;

function chartsOf({ at, startedAt, history, gauges, sync, memory, disk }: Stats): ChartOf[] {
  const end = Math.floor(at / MINUTE_MS) * MINUTE_MS;
  const times = Array.from({ length: MINUTES }, (_, position) => end - (MINUTES - 1 - position) * MINUTE_MS);
  const runs = new Map(history.map((minute) => [minute.at, minute]));
  const gaugesAt = new Map(gauges.map((gauges) => [gauges.at, gauges]));
  const since = Math.min(history[0]?.at ?? Infinity, Math.floor(startedAt / MINUTE_MS) * MINUTE_MS);
  type Minute = Stats["history"][number];
  type Gauges = Stats["gauges"][number];
  /** Counters: a minute without an entry is 0, or unknown before counting started. */
  const counter = (of: (minute: Minute) => number) =>
    times.map((time) => {
      const minute = runs.get(time);
      return minute === undefined ? (time < since ? null : 0) : of(minute);
    });
  const measure = (of: (minute: Minute) => number | null) =>
    times.map((time) => {
      const minute = runs.get(time);
      return minute === undefined ? null : of(minute);
    });
  /** Gauges: the last point is the current value. */
  const gauge = (of: (gauges: Gauges) => number | null, now: number | null) =>
    times.map((time, position) => {
      if (position === times.length - 1) return now;
      const gauges = gaugesAt.get(time);
      return gauges === undefined ? null : of(gauges);
    });
  const perMinute = (value: number) => `${count(value)}/min`;
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
    },
    {
      title: "Errors",
      series: [{ name: "errors", values: counter(({ errors }) => errors), tone: "bad" }],
      format: perMinute,
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
      ...(disk.free !== null && { now: `${size(disk.database + disk.log)}, ${size(disk.free)} free` }),
    },
  ];
  return charts.map((chart) => ({ ...chart, times }));
}
