/** Overview: issues, charts of the last hour, and totals. */
import { useMemo, useState } from "react";
import { useConnectionState, useQuery } from "syncline/react";
import type { CachedSizes } from "../../../../mod/ops/admin/actions.ts";
import { api } from "../../server/api.ts";
import type { BackupList, ClusterStatus, ScheduledBackups, Stats } from "../../server/stats.ts";
import { href } from "../../shell/route.ts";
import { Chart, type ChartProps } from "../../ui/chart.tsx";
import { Badge, Icon } from "../../ui/controls.tsx";
import { count, duration, size, Time } from "../../ui/format.tsx";
import { useRequest } from "../../ui/use_request.tsx";
import { Card, Empty, Loading, Table, View } from "../../ui/view.tsx";
import { findIssues, type Issue, newestBackup } from "./issues.ts";

const MINUTE_MS = 60_000;
const MINUTES = 60;

/** Charts of the last hour that highlight the same minute together. */
function LastHour({ stats }: { readonly stats: Stats }) {
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

const ASKED_EVERY_MS = 30_000;

export function Overview() {
  const backups = useRequest<BackupList>("/api/admin/backups", ASKED_EVERY_MS).value;
  const { value: stats, error } = useRequest<Stats>("/api/admin/stats", ASKED_EVERY_MS);
  // Listing a bucket costs money, so fetch it once.
  const scheduled = useRequest<ScheduledBackups>("/api/admin/scheduled-backups").value;
  const cluster = useRequest<ClusterStatus>("/api/admin/cluster", ASKED_EVERY_MS).value;
  const jobs = useQuery(api.schedule.jobs, {
    state: "failed",
    paginationOpts: { numItems: 5, cursor: null },
  });
  const failedJobs = jobs?.page.map(({ name }) => name) ?? [];
  return (
    <View title="Overview" text="Issues and activity">
      <Issues
        issues={findIssues({ backups, scheduled, stats, cluster, failedJobs, now: stats?.at ?? Date.now() })}
        loading={backups === undefined || stats === undefined}
      />
      {error !== null && <p className="field-error" role="alert">{error}</p>}
      {stats === undefined ? <Loading /> : <LastHour stats={stats} />}
      {stats !== undefined && (
        <div className="columns">
          <Slowest stats={stats} />
          <Server stats={stats} backups={backups} scheduled={scheduled} />
        </div>
      )}
      <Sizes />
    </View>
  );
}

function Issues({ issues, loading }: { readonly issues: readonly Issue[]; readonly loading: boolean }) {
  return (
    <Card title="Issues" flush>
      {issues.length === 0
        ? (
          <p className="no-issues">
            {loading ? "Checking…" : (
              <>
                <span data-tone="good">
                  <Icon name="check" />
                </span>{" "}
                No issues
              </>
            )}
          </p>
        )
        : (
          <ul className="issues">
            {issues.map(({ tone, text, act, to }) => (
              <li key={text}>
                <span data-tone={tone}>
                  <Icon name="warn" />
                </span>
                <span className="grow">{text}</span>
                <a className="button" href={to}>{act}</a>
              </li>
            ))}
          </ul>
        )}
    </Card>
  );
}

const SLOWEST = 5;

function Slowest({ stats }: { readonly stats: Stats }) {
  const rows = stats.functions.filter(({ function: path }) => !path.startsWith("_"))
    .flatMap(({ function: path, kind, hour }) => hour === null ? [] : [{ path, kind, ...hour }])
    .toSorted((a, b) => (b.p95 ?? 0) - (a.p95 ?? 0)).slice(0, SLOWEST);
  return (
    <Card flush title="Slowest functions in the last hour" actions={<a href={href(["functions"])}>All</a>}>
      {rows.length === 0 && <Empty title="No functions ran in the last hour" />}
      {rows.length > 0 && (
        <Table head={["Function", { number: "Calls" }, { number: "p50" }, { number: "p95" }]}>
          {rows.map(({ path, kind, calls, p50, p95 }) => (
            <tr key={`${kind} ${path}`}>
              <td className="mono">
                <a href={href(["functions", path])}>{path}</a>
              </td>
              <td className="number">{count(calls)}</td>
              <td className="number">{p50 === null ? "–" : duration(p50)}</td>
              <td className="number">{p95 === null ? "–" : duration(p95)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  );
}

function Server({ stats, backups, scheduled }: {
  readonly stats: Stats;
  readonly backups: BackupList | undefined;
  readonly scheduled: ScheduledBackups | undefined;
}) {
  const { transport } = useConnectionState();
  const replication = backups?.replication;
  const newest = newestBackup(backups, scheduled);
  return (
    <Card title="Server">
      <dl className="facts">
        <dt>Version</dt>
        <dd>{stats.version}</dd>
        <dt>Started</dt>
        <dd>
          <Time at={stats.startedAt} />
        </dd>
        <dt>Commits so far</dt>
        <dd>{count(stats.ts)}</dd>
        <dt>Connection</dt>
        <dd>
          {transport === "webSocket" ? "WebSocket" : transport === "polling" ? "HTTP polling" : "none"}
        </dd>
        <dt>Newest backup</dt>
        <dd>
          {newest === null ? "…" : newest === -Infinity ? "none" : <Time at={newest} as="ago" />}
        </dd>
        <dt>Replication</dt>
        <dd>
          {replication === undefined
            ? "…"
            : !replication.enabled
            ? <Badge>off</Badge>
            : <Badge tone="good">{replication.lagMs === 0 ? "up to date" : "on"}</Badge>}
        </dd>
      </dl>
    </Card>
  );
}

function Sizes() {
  const { value: known } = useRequest<CachedSizes>("_admin/data:sizes");
  if (known === undefined) return <Loading />;
  const tables = known.tables.toSorted((a, b) => b.bytes + b.indexBytes - (a.bytes + a.indexBytes));
  return (
    <Card
      flush
      title="Tables"
      actions={
        <span className="quiet">
          as of <Time at={known.at} as="ago" />
        </span>
      }
    >
      <Table head={["Table", { number: "Documents" }, { number: "Size" }, { number: "Indexes" }]}>
        {tables.map(({ table, documents, bytes, indexBytes }) => (
          <tr key={table}>
            <td className="mono">
              {table.startsWith("_") ? table : <a href={href(["data", table])}>{table}</a>}
            </td>
            <td className="number">{count(documents)}</td>
            <td className="number">{size(bytes)}</td>
            <td className="number">{size(indexBytes)}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
