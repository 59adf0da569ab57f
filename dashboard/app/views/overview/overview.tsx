/** Overview: issues, charts, and totals. */
import { lazy, Suspense } from "react";
import { useConnectionState } from "syncline/react";
import type { CachedSizes } from "../../../../mod/ops/admin/actions.ts";
import type { BackupList, Stats } from "../../server/stats.ts";
import { href } from "../../shell/route.ts";
import { Badge } from "../../ui/controls.tsx";
import { count, countOf, duration, size, Time } from "../../ui/format.tsx";
import { useRequest } from "../../ui/use_request.tsx";
import { Card, Empty, Loading, Table, View } from "../../ui/view.tsx";
import { Charts } from "./charts.tsx";
import { Issues } from "./issues.tsx";

const ASKED_EVERY_MS = 30_000;

const Checklist = lazy(async () => ({ default: (await import("./checklist.tsx")).Checklist }));

export function Overview() {
  const backups = useRequest<BackupList>("/api/admin/backups", ASKED_EVERY_MS).value;
  const { value: stats, error } = useRequest<Stats>("/api/admin/stats", ASKED_EVERY_MS);
  return (
    <View title="Overview" text="Issues and activity">
      <Issues />
      <Suspense>
        <Checklist stats={stats} backups={backups} />
      </Suspense>
      {error !== null && <p className="field-error" role="alert">{error}</p>}
      {stats === undefined ? <Loading /> : <Charts stats={stats} />}
      {stats !== undefined && (
        <div className="columns">
          <Slowest stats={stats} />
          <Server stats={stats} backups={backups} />
        </div>
      )}
      <Sizes />
    </View>
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

function Server({ stats, backups }: {
  readonly stats: Stats;
  readonly backups: BackupList | undefined;
}) {
  const { transport } = useConnectionState();
  const replication = backups?.replication;
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
          {backups === undefined ? "…" : backups.newest === null ? "none" : (
            <a href={href(["backups"])}>
              <Time at={backups.newest} as="ago" />
            </a>
          )}
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
  const tables = known.tables.toSorted((a, b) => bytesOf(b) - bytesOf(a));
  const system = tables.filter(({ table }) => table.startsWith("_"));
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
      {system.length === tables.length
        ? <Empty title="The app has no tables" />
        : <SizeTable tables={tables.filter((table) => !system.includes(table))} />}
      <details>
        <summary>
          {countOf(system.length, "system table")},{" "}
          {size(system.reduce((sum, table) => sum + bytesOf(table), 0))}
        </summary>
        <SizeTable tables={system} />
      </details>
    </Card>
  );
}

type TableSize = CachedSizes["tables"][number];

function bytesOf({ bytes, indexBytes }: TableSize): number {
  return bytes + indexBytes;
}

function SizeTable({ tables }: { readonly tables: readonly TableSize[] }) {
  return (
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
  );
}
