/** Replication status and point-in-time restore. */
import { useState } from "react";
import { adminSession } from "../../server/admin_session.ts";
import type { FollowerStatus, ReplicationStatus } from "../../server/stats.ts";
import { Badge, Button } from "../../ui/controls.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { count, duration, size, Time } from "../../ui/format.tsx";
import { useRequest } from "../../ui/use_request.tsx";
import { Card, Empty } from "../../ui/view.tsx";
import { PointInTime } from "./point_in_time.tsx";
import { rangesOf } from "./restorable.ts";

const ASKED_EVERY_MS = 15_000;
/** A smaller lag is shown as up to date. */
const FINE_MS = 10_000;

export function Replication({ onStaged }: { readonly onStaged: () => void }) {
  const { value, error, refetch } = useRequest<ReplicationStatus>("/api/admin/replication", ASKED_EVERY_MS);
  const [busy, setBusy] = useState(false);
  if (error !== null) {
    return (
      <Card title="Replication">
        <p className="field-error" role="alert">{error}</p>
      </Card>
    );
  }
  if (value === undefined) return null;
  if (!value.enabled && value.follower !== undefined) return <Following follower={value.follower} />;
  if (!value.enabled) {
    return (
      <Card title="Replication and point-in-time restore">
        <Empty title="Replicate commits continuously to a bucket or folder">
          <p>
            With replication you can restore any second of the past. Start the server with{" "}
            <code>--replicate-to s3://bucket/prefix</code>.
          </p>
        </Empty>
      </Card>
    );
  }
  const { target, lagMs, lagCommits, shippedTs, journalBytes, lastSegment, lastSnapshot, takenBy, errors } =
    value;
  async function takeSnapshot(): Promise<void> {
    setBusy(true);
    await attempt(
      () => adminSession.fetch("/api/admin/replication/snapshot", { method: "POST" }),
      "Snapshot uploaded.",
    );
    setBusy(false);
    refetch();
  }
  return (
    <>
      <Card
        title={
          <>
            Replication {takenBy !== null
              ? <Badge tone="bad">taken over by {takenBy.host}</Badge>
              : lagMs === null
              ? <Badge tone="warn">unknown</Badge>
              : lagMs < FINE_MS
              ? <Badge tone="good">up to date</Badge>
              : <Badge tone="bad">{duration(lagMs)} behind</Badge>}
          </>
        }
        actions={
          <Button needs="editor" disabled={busy} onClick={() => void takeSnapshot()}>
            {busy ? "Uploading…" : "Upload a snapshot"}
          </Button>
        }
      >
        <dl className="facts">
          <dt>Target</dt>
          <dd className="mono">{target}</dd>
          <dt>Replicated</dt>
          <dd>
            {shippedTs === null ? "unknown" : `up to commit ${count(shippedTs)}`}
            {lagCommits !== null && lagCommits > 0 && `, ${count(lagCommits)} commits pending`}
          </dd>
          <dt>Pending</dt>
          <dd>{journalBytes === null ? "–" : size(journalBytes)}</dd>
          <dt>Last upload</dt>
          <dd>{lastSegment === null ? "–" : <Time at={Date.parse(lastSegment.at)} as="ago" />}</dd>
          <dt>Last snapshot</dt>
          <dd>
            {lastSnapshot === null ? "–" : (
              <>
                <Time at={Date.parse(lastSnapshot.at)} as="ago" />, {size(lastSnapshot.bytes)}
              </>
            )}
          </dd>
        </dl>
        <Errors errors={errors} />
      </Card>
      <PointInTime ranges={rangesOf(value)} onStaged={onStaged} />
    </>
  );
}

function Following({ follower }: { readonly follower: FollowerStatus }) {
  const { from, ts, newestTs, lagMs, lagCommits, errors } = follower;
  return (
    <Card
      title={
        <>
          Following another server {lagMs === null
            ? <Badge tone="warn">unknown</Badge>
            : lagMs < FINE_MS
            ? <Badge tone="good">up to date</Badge>
            : <Badge tone="bad">{duration(lagMs)} behind</Badge>}
        </>
      }
    >
      <dl className="facts">
        <dt>Source</dt>
        <dd className="mono">{from}</dd>
        <dt>Applied</dt>
        <dd>
          up to commit {count(ts)}
          {lagCommits > 0 && `, ${count(lagCommits)} of ${count(newestTs)} commits pending`}
        </dd>
        <dt>Writes</dt>
        <dd>
          rejected; start the server with <code>--promote</code> to accept writes
        </dd>
      </dl>
      <Errors errors={errors} />
    </Card>
  );
}

function Errors({ errors }: { readonly errors: FollowerStatus["errors"] }) {
  if (errors.length === 0) return null;
  return (
    <ul className="errors">
      {errors.slice(-3).toReversed().map(({ at, message }) => (
        <li key={at + message}>
          <Time at={Date.parse(at)} as="ago" /> <span className="field-error">{message}</span>
        </li>
      ))}
    </ul>
  );
}
