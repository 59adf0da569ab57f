/** Status of a cluster: leader, replication lag of each server, and database connection. */
import type { Member } from "../../../../mod/cluster/postgres/members.ts";
import { Badge } from "../../ui/badge.tsx";
import { Table } from "../../ui/table.tsx";
import { count, duration } from "../../ui/format.tsx";
import { Card, Empty } from "../../ui/view.tsx";
import type { ClusterStatus } from "../../server/stats.ts";

/** Servers not seen for longer than this are highlighted. */
const SILENT_MS = 10_000;

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
        {lagCommits === 0 ? "–" : count(lagCommits)}
        {lagCommits > 0 && lagMs !== null && `, ${duration(Math.max(1, lagMs))}`}
      </td>
      <td className="number">{count(sockets)}</td>
      <td className="number" data-tone={seenMs > SILENT_MS ? "bad" : undefined}>
        {duration(Math.max(1, seenMs))} ago
      </td>
    </tr>
  );
}
