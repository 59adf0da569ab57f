/** This server with its processes and queues, and the other servers of its cluster. */
import type { Member } from "../../../../mod/cluster/postgres/members.ts";
import type { ClusterStatus, Stats } from "../../server/stats.ts";
import { Badge } from "../../ui/controls.tsx";
import { count, countOf, duration, size, Time } from "../../ui/format.tsx";
import { Card, Empty, Loading, Table, View } from "../../ui/view.tsx";
import { useRequest } from "../../ui/use_request.tsx";

/** Servers not seen for longer than this are highlighted. */
const SILENT_MS = 10_000;

/** Status of a cluster: leader, replication lag of each server, and database connection. */
export function Cluster({ cluster }: { readonly cluster: ClusterStatus }) {
  if (!cluster.enabled) {
    return (
      <Card title="Cluster">
        <Empty title="Single server">
          <p>
            Several servers can serve one app through PostgreSQL, with automatic failover:{" "}
            <a href="./docs/cluster" target="_blank" rel="noopener">learn more</a>.
          </p>
        </Empty>
      </Card>
    );
  }
  const { place, role, epoch, takeovers, database, servers } = cluster;
  return (
    <>
      <Card
        title={
          <>
            Cluster {database.status === "ok"
              ? <Badge tone="good">database connected</Badge>
              : <Badge tone="bad">database unreachable for {duration(database.forMs)}</Badge>}
          </>
        }
      >
        <dl className="facts">
          <dt>This server</dt>
          <dd>
            {role === "leader" ? "leader (makes all commits)" : "follower (forwards writes to the leader)"}
          </dd>
          <dt>Database</dt>
          <dd className="mono">{place}</dd>
          <dt>Epoch</dt>
          <dd>{count(epoch)}</dd>
          <dt>Takeovers</dt>
          <dd>{count(takeovers)} by this server since it started</dd>
        </dl>
      </Card>
      <Card flush title="Servers of the cluster">
        {servers === null && <Empty title="Unknown while the database is unreachable" />}
        {servers !== null && (
          <Table
            head={[
              "Address",
              "Role",
              { number: "Commit" },
              { number: "Lag" },
              { number: "Sockets" },
              { number: "Last seen" },
            ]}
          >
            {servers.map((server) => <ServerRow key={server.address} server={server} />)}
          </Table>
        )}
      </Card>
    </>
  );
}

function ServerRow(
  { server: { address, role, ts, lagCommits, lagMs, sockets, seenMs } }: { readonly server: Member },
) {
  return (
    <tr>
      <td className="mono">{address}</td>
      <td>{role === "leader" ? <Badge tone="accent">leader</Badge> : <Badge>follower</Badge>}</td>
      <td className="number">{count(ts)}</td>
      <td className="number">
        {lagCommits === 0 ? "–" : countOf(lagCommits, "commit")}
        {lagCommits > 0 && lagMs !== null && `, ${duration(Math.max(1, lagMs))}`}
      </td>
      <td className="number">{count(sockets)}</td>
      <td className="number" data-tone={seenMs > SILENT_MS ? "bad" : undefined}>
        {duration(Math.max(1, seenMs))} ago
      </td>
    </tr>
  );
}

const ASKED_EVERY_MS = 10_000;

/** Short descriptions of the roles. */
const ROLES: Readonly<Record<string, string>> = {
  writer: "all mutations",
  reader: "queries",
  runner: "actions and routes",
};

export function Servers() {
  const { value: stats, error } = useRequest<Stats>("/api/admin/stats", ASKED_EVERY_MS);
  const { value: cluster, error: clusterError } = useRequest<ClusterStatus>(
    "/api/admin/cluster",
    ASKED_EVERY_MS,
  );
  const failure = error ?? clusterError;
  return (
    <View title="Servers" text="This server, its processes and its cluster.">
      {failure !== null && <p className="field-error" role="alert">{failure}</p>}
      {stats === undefined && failure === null && <Loading />}
      {stats !== undefined && (
        <div className="columns">
          <ThisServer stats={stats} />
          <Processes stats={stats} />
        </div>
      )}
      {cluster !== undefined && <Cluster cluster={cluster} />}
    </View>
  );
}

/** Names of queued items, by queue. */
const QUEUED: Readonly<Record<string, readonly [one: string, many: string]>> = {
  mutations: ["mutation", "mutations"],
  queries: ["query", "queries"],
  calls: ["call", "calls"],
  log: ["log entry", "log entries"],
};

const queuedText = (name: string, waits: number): string =>
  countOf(waits, ...QUEUED[name] ?? [name, name] as const);

function ThisServer({ stats: { version, startedAt, ts, sync, queues, disk } }: { readonly stats: Stats }) {
  const waiting = Object.entries(queues).filter(([, waits]) => waits > 0);
  return (
    <Card title="This server">
      <dl className="facts">
        <dt>Version</dt>
        <dd>{version}</dd>
        <dt>Started</dt>
        <dd>
          <Time at={startedAt} />
        </dd>
        <dt>Newest commit</dt>
        <dd>{count(ts)}</dd>
        <dt>Connected</dt>
        <dd>
          {countOf(sync.sockets, "socket")}, {countOf(sync.subscriptions, "subscription")}
        </dd>
        <dt>Queued</dt>
        <dd>
          {waiting.length === 0
            ? "nothing"
            : waiting.map(([name, waits]) => queuedText(name, waits)).join(", ")}
        </dd>
        <dt>Database</dt>
        <dd>{size(disk.database)}, {size(disk.log)} of log</dd>
        <dt>Disk</dt>
        <dd>
          {disk.free === null || disk.total === null
            ? "unknown"
            : `${size(disk.free)} of ${size(disk.total)} free`}
        </dd>
      </dl>
    </Card>
  );
}

function Processes({ stats: { isolates, memory } }: { readonly stats: Stats }) {
  return (
    <Card flush title="Processes">
      <Table head={["Process", { number: "Running" }, { number: "Crashed" }, { number: "Memory" }]}>
        <tr>
          <td className="wrap">
            main <span className="quiet">sockets, HTTP</span>
          </td>
          <td className="number">1</td>
          <td className="number">–</td>
          <td className="number">{size(memory.main)}</td>
        </tr>
        {Object.entries(isolates).map(([role, { running, lost }]) => (
          <tr key={role}>
            <td className="wrap">
              {role} <span className="quiet">{ROLES[role]}</span>
            </td>
            <td className="number">{count(running)}</td>
            <td className="number">{lost === 0 ? "–" : <Badge tone="warn">{count(lost)}</Badge>}</td>
            <td className="number">
              {memory.isolates?.[role] === undefined ? "–" : size(memory.isolates[role])}
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
