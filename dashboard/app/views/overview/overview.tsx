/** How the server is: what needs attention first, then how much there is of everything. */
import { useAction, useConnectionState, useQuery } from "syncline/react";
import { useEffect, useState } from "react";
import type { KnownSizes } from "../../../../mod/ops/admin/table_sizes.ts";
import { api } from "../../server/api.ts";
import { href } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { count, size, Time } from "../../ui/texts.tsx";
import { useRequest } from "../../ui/use_request.ts";
import { Card, Empty, Loading, View } from "../../ui/view.tsx";

const DAY_MS = 86_400_000;
/** Without a backup for so long somebody should know. */
const BACKUP_LATE_MS = 2 * DAY_MS;
const ASKED_EVERY_MS = 30_000;

interface BackupList {
  readonly backups: readonly { readonly name: string; readonly createdAt: string; readonly error?: string }[];
  readonly restore: object | null;
  readonly replication: { readonly enabled: boolean };
}

export function Overview() {
  const backups = useRequest<BackupList>("/api/admin/backups", ASKED_EVERY_MS);
  const health = useRequest<{ readonly ts: number }>("/api/health", ASKED_EVERY_MS);
  const { transport } = useConnectionState();
  const jobs = useQuery(api.schedule.jobs, {
    state: "failed",
    paginationOpts: { numItems: 5, cursor: null },
  });
  return (
    <View title="Overview" text="What needs attention, and how much there is of everything.">
      <Attention backups={backups.value} failed={jobs?.page ?? []} />
      <Card title="Server">
        <dl className="facts">
          <dt>Commits so far</dt>
          <dd>{health.value === undefined ? "…" : count(health.value.ts)}</dd>
          <dt>Connected by</dt>
          <dd>
            {transport === "webSocket"
              ? "WebSocket"
              : transport === "polling"
              ? "polling over HTTP"
              : "nothing"}
          </dd>
          <dt>Replication</dt>
          <dd>
            {backups.value?.replication.enabled ? <Badge tone="good">on</Badge> : <Badge>off</Badge>}
          </dd>
        </dl>
      </Card>
      <Sizes />
    </View>
  );
}

interface Concern {
  readonly text: string;
  readonly act: string;
  readonly to: string;
}

function Attention({ backups, failed }: {
  readonly backups: BackupList | undefined;
  readonly failed: readonly {
    readonly jobId: string;
    readonly name: string;
    readonly scheduledTime: number;
  }[];
}) {
  const concerns: Concern[] = [];
  if (backups !== undefined) {
    const newest = backups.backups.filter(({ error }) => error === undefined)
      .reduce((latest, { createdAt }) => Math.max(latest, Date.parse(createdAt)), -Infinity);
    if (newest < Date.now() - BACKUP_LATE_MS && !backups.replication.enabled) {
      concerns.push({
        text: newest === -Infinity ? "There is no backup." : "The newest backup is older than two days.",
        act: "Back up",
        to: href(["backups"]),
      });
    }
    for (const { name, error } of backups.backups) {
      if (error !== undefined) {
        concerns.push({ text: `${name}: ${error}`, act: "Look", to: href(["backups"]) });
      }
    }
    if (backups.restore !== null) {
      concerns.push({ text: "A restore waits for the next start.", act: "Look", to: href(["backups"]) });
    }
  }
  if (failed.length > 0) {
    concerns.push({
      text: `Scheduled functions have failed: ${[...new Set(failed.map(({ name }) => name))].join(", ")}.`,
      act: "Look",
      to: href(["schedule"], { state: "failed" }),
    });
  }
  return (
    <Card title="Needs attention" flush>
      {concerns.length === 0
        ? <Empty title={backups === undefined ? "Looking…" : "Nothing: all is well"} />
        : (
          <table className="table">
            <tbody>
              {concerns.map(({ text, act, to }) => (
                <tr key={text}>
                  <td>{text}</td>
                  <td className="number">
                    <a className="button" href={to}>{act}</a>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
    </Card>
  );
}

function Sizes() {
  const readSizes = useAction(api.data.sizes);
  const [known, setKnown] = useState<KnownSizes | null>(null);
  useEffect(() => {
    let gone = false;
    readSizes({}).then((sizes) => gone || setKnown(sizes), () => {});
    return () => {
      gone = true;
    };
  }, [readSizes]);
  if (known === null) return <Loading />;
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
      <table className="table">
        <thead>
          <tr>
            <th>Table</th>
            <th className="number">Documents</th>
            <th className="number">Size</th>
            <th className="number">Indexes</th>
          </tr>
        </thead>
        <tbody>
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
        </tbody>
      </table>
    </Card>
  );
}
