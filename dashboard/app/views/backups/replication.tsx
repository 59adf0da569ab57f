/** How far the replica is, and any state of the past that it can give back. */
import { useState } from "react";
import { adminSession } from "../../server/admin_session.ts";
import type { FollowerStatus, ReplicationStatus } from "../../server/stats.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { attempt } from "../../ui/notes.tsx";
import { count, duration, size, Time } from "../../ui/texts.tsx";
import { useRequest } from "../../ui/use_request.ts";
import { Card, Empty } from "../../ui/view.tsx";
import { PointInTime } from "./point_in_time.tsx";

const ASKED_EVERY_MS = 15_000;
/** A replica that is behind by less is as good as up to date. */
const FINE_MS = 10_000;

export function Replication({ onStaged }: { readonly onStaged: () => void }) {
  const { value, error, again } = useRequest<ReplicationStatus>("/api/admin/replication", ASKED_EVERY_MS);
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
      <Card title="Replication and point in time">
        <Empty title="Every commit can go to a bucket or a folder as it happens">
          <p>
            Then any second of the past can be restored. Start the server with{" "}
            <code>--replicate-to s3://bucket/prefix</code>.
          </p>
        </Empty>
      </Card>
    );
  }
  const { target, lagMs, lagCommits, shippedTs, journalBytes, lastSegment, lastSnapshot, takenBy, errors } =
    value;
  const ranges = (value.generations ?? []).flatMap(({ generation, ranges }) =>
    ranges.map((range) => ({ ...range, generation }))
  );
  async function takeSnapshot(): Promise<void> {
    setBusy(true);
    await attempt(
      () => adminSession.fetch("/api/admin/replication/snapshot", { method: "POST" }),
      "The snapshot is shipped.",
    );
    setBusy(false);
    again();
  }
  return (
    <>
      <Card
        title={
          <>
            Replication {takenBy !== null
              ? <Badge tone="bad">taken by {takenBy.host}</Badge>
              : lagMs === null
              ? <Badge tone="warn">not known yet</Badge>
              : lagMs < FINE_MS
              ? <Badge tone="good">up to date</Badge>
              : <Badge tone="bad">{duration(lagMs)} behind</Badge>}
          </>
        }
        actions={
          <Button disabled={busy} onClick={() => void takeSnapshot()}>
            {busy ? "Shipping…" : "Ship a snapshot now"}
          </Button>
        }
      >
        <dl className="facts">
          <dt>Target</dt>
          <dd className="mono">{target}</dd>
          <dt>Safe there</dt>
          <dd>
            {shippedTs === null ? "not known yet" : `all up to commit ${count(shippedTs)}`}
            {lagCommits !== null && lagCommits > 0 && `, ${count(lagCommits)} commits wait`}
          </dd>
          <dt>Waits here</dt>
          <dd>{journalBytes === null ? "–" : size(journalBytes)}</dd>
          <dt>Last shipped</dt>
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
      <PointInTime ranges={ranges} onStaged={onStaged} />
    </>
  );
}

/** On a server that shows the commits of another one. */
function Following({ follower }: { readonly follower: FollowerStatus }) {
  const { from, ts, newestTs, lagMs, lagCommits, errors } = follower;
  return (
    <Card
      title={
        <>
          This server follows another one {lagMs === null
            ? <Badge tone="warn">not known yet</Badge>
            : lagMs < FINE_MS
            ? <Badge tone="good">up to date</Badge>
            : <Badge tone="bad">{duration(lagMs)} behind</Badge>}
        </>
      }
    >
      <dl className="facts">
        <dt>Follows</dt>
        <dd className="mono">{from}</dd>
        <dt>Shows</dt>
        <dd>
          all up to commit {count(ts)}
          {lagCommits > 0 && `, ${count(lagCommits)} of ${count(newestTs)} commits are to come`}
        </dd>
        <dt>Writes</dt>
        <dd>
          are refused here: start it with <code>--promote</code> to go on with commits of its own
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
