/** The servers of a cluster: who leads, how far each is, and whether the database that joins them answers. */
import type { Member } from "../../../../mod/cluster/postgres/members.ts";
import { Badge } from "../../ui/badge.tsx";
import { Table } from "../../ui/table.tsx";
import { count, duration } from "../../ui/texts.tsx";
import { Card, Empty } from "../../ui/view.tsx";
import type { ClusterStatus } from "../../server/stats.ts";

/** Who was not heard of for so long may be gone. */
const SILENT_MS = 10_000;

export function Cluster({ cluster }: { readonly cluster: ClusterStatus }) {
  if (!cluster.enabled) {
    return (
      <Card title="Cluster">
        <Empty title="This server is alone">
          <p>
            Several can serve one app over a PostgreSQL, and one takes over when another ends:{" "}
            <a href="./docs/cluster" target="_blank" rel="noopener">how</a>.
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
              ? <Badge tone="good">database answers</Badge>
              : <Badge tone="bad">database away for {duration(database.forMs)}</Badge>}
          </>
        }
      >
        <dl className="facts">
          <dt>This server</dt>
          <dd>{role === "leader" ? "leads: it makes all commits" : "follows: writes are refused here"}</dd>
          <dt>Database</dt>
          <dd className="mono">{place}</dd>
          <dt>Epoch</dt>
          <dd>{count(epoch)}</dd>
          <dt>Takeovers</dt>
          <dd>{count(takeovers)} by this server since its start</dd>
        </dl>
      </Card>
      <Card flush title="Servers of the cluster">
        {servers === null && <Empty title="Nothing is known of the others while the database is away" />}
        {servers !== null && (
          <Table
            head={[
              "Address",
              "Role",
              { number: "Commit" },
              { number: "Behind" },
              { number: "Sockets" },
              { number: "Heard of" },
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
