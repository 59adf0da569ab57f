/** The last hour in small charts, which are pointed at together. */
import { useMemo, useState } from "react";
import type { Stats } from "../../server/stats.ts";
import { Chart, type ChartProps } from "../../ui/chart.tsx";
import { count, duration, size } from "../../ui/texts.tsx";

const MINUTE_MS = 60_000;
const MINUTES = 60;

export function LastHour({ stats }: { readonly stats: Stats }) {
  const [pointed, setPointed] = useState<number | null>(null);
  const charts = useMemo(() => chartsOf(stats), [stats]);
  return (
    <div className="charts">
      {charts.map((chart) => <Chart key={chart.title} {...chart} pointed={pointed} onPoint={setPointed} />)}
    </div>
  );
}

type ChartOf = Omit<ChartProps, "pointed" | "onPoint">;

function chartsOf({ at, startedAt, history, gauges, sync, memory, disk }: Stats): ChartOf[] {
  const end = Math.floor(at / MINUTE_MS) * MINUTE_MS;
  const times = Array.from({ length: MINUTES }, (_, position) => end - (MINUTES - 1 - position) * MINUTE_MS);
  const runs = new Map(history.map((minute) => [minute.at, minute]));
  const looks = new Map(gauges.map((look) => [look.at, look]));
  const since = Math.min(history[0]?.at ?? Infinity, Math.floor(startedAt / MINUTE_MS) * MINUTE_MS);
  type Minute = Stats["history"][number];
  type Look = Stats["gauges"][number];
  /** A minute without an entry had none; before the first one nobody counted. */
  const counted = (of: (minute: Minute) => number) =>
    times.map((time) => {
      const minute = runs.get(time);
      return minute === undefined ? (time < since ? null : 0) : of(minute);
    });
  const measured = (of: (minute: Minute) => number | null) =>
    times.map((time) => {
      const minute = runs.get(time);
      return minute === undefined ? null : of(minute);
    });
  /** The newest value is the one of this moment. */
  const looked = (of: (look: Look) => number | null, now: number | null) =>
    times.map((time, position) => {
      if (position === times.length - 1) return now;
      const look = looks.get(time);
      return look === undefined ? null : of(look);
    });
  const perMinute = (value: number) => `${count(value)}/min`;
  const memoryNow = Object.values(memory.isolates ?? {}).reduce((sum, bytes) => sum + bytes, memory.main);
  const charts: readonly Omit<ChartOf, "times">[] = [
    {
      title: "Calls",
      series: [{ name: "runs", values: counted(({ calls }) => calls) }, {
        name: "without a run",
        values: counted(({ cacheHits }) => cacheHits),
        tone: "quiet",
      }],
      format: perMinute,
    },
    {
      title: "Errors",
      series: [{ name: "errors", values: counted(({ errors }) => errors), tone: "bad" }],
      format: perMinute,
    },
    {
      title: "Latency",
      series: [{ name: "p50", values: measured(({ runMs }) => runMs.p50) }, {
        name: "p95",
        values: measured(({ runMs }) => runMs.p95),
        tone: "quiet",
      }, { name: "p99", values: measured(({ runMs }) => runMs.p99), tone: "warn" }],
      format: duration,
    },
    {
      title: "Commits",
      series: [{ name: "mutations", values: counted(({ mutations }) => mutations) }],
      format: perMinute,
    },
    {
      title: "Sockets",
      series: [{ name: "sockets", values: looked(({ sockets }) => sockets, sync.sockets) }],
      format: count,
    },
    {
      title: "Subscriptions",
      series: [{
        name: "subscriptions",
        values: looked(({ subscriptions }) => subscriptions, sync.subscriptions),
      }],
      format: count,
    },
    {
      title: "Memory",
      series: [{ name: "memory", values: looked(({ memory }) => memory, memoryNow) }],
      format: size,
    },
    {
      title: "Disk",
      series: [{
        name: "database and log",
        values: looked(({ stored }) => stored, disk.database + disk.log),
      }],
      format: size,
      ...(disk.free !== null && { now: `${size(disk.database + disk.log)}, ${size(disk.free)} free` }),
    },
  ];
  return charts.map((chart) => ({ ...chart, times }));
}
