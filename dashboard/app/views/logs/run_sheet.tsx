/** One run: what it said, what it failed with, and the runs of the same request. */
import { Badge } from "../../ui/badge.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { count, duration, Time } from "../../ui/texts.tsx";
import { useRequest } from "../../ui/use_request.ts";
import { Card } from "../../ui/view.tsx";
import type { LoggedRun } from "./use_logs.ts";

/** Runs of one request that are told. */
const TOLD = 100;

export function RunSheet({ run, onClose, onOpen, hrefOf }: {
  readonly run: LoggedRun;
  readonly onOpen: (run: LoggedRun) => void;
  readonly onClose: () => void;
  /** Address of the log with a filter. */
  readonly hrefOf: (filter: Readonly<Record<string, string>>) => string;
}) {
  const request = useRequest<{ readonly runs: readonly LoggedRun[] }>(
    `/api/admin/logs?request=${run.requestId}&limit=${TOLD}`,
  ).value;
  // In the order in which they began.
  const runs = request?.runs.toSorted((a, b) => a.at - a.durationMs - (b.at - b.durationMs)) ?? [];
  return (
    <Dialog open form="side" title={run.function} onClose={onClose}>
      <dl className="facts">
        <dt>Ended</dt>
        <dd>
          <Time at={run.at} />
        </dd>
        <dt>Outcome</dt>
        <dd>
          <Badge tone={run.outcome === "success" ? "good" : "bad"}>{run.outcome}</Badge>{" "}
          <Badge>{run.kind}</Badge>
        </dd>
        <dt>Took</dt>
        <dd>{duration(run.durationMs)}, after {duration(run.queuedMs)} in the queue</dd>
        <dt>Called by</dt>
        <dd>
          {run.caller === null
            ? "nobody signed in"
            : <a href={hrefOf({ caller: run.caller })} onClick={onClose}>{run.caller}</a>}
        </dd>
        <dt>Request</dt>
        <dd>
          <a className="mono" href={hrefOf({ request: run.requestId })} onClick={onClose}>
            {run.requestId}
          </a>
        </dd>
        <dt>Commit</dt>
        <dd>{run.ts === null ? "–" : count(run.ts)}</dd>
        <dt>Read</dt>
        <dd>{count(run.documentsRead)} documents, {count(run.indexRowsRead)} index rows</dd>
        <dt>Wrote</dt>
        <dd>{count(run.documentsWritten)} documents, {count(run.indexRowsWritten)} index rows</dd>
      </dl>
      {run.error !== null && (
        <Card title="Error">
          <pre className="result">{[run.error.message, run.error.stack ?? ""].join("\n").trim()}</pre>
        </Card>
      )}
      {run.logLines.length > 0 && (
        <Card title="Log lines">
          <pre className="result">{run.logLines.join("\n")}</pre>
        </Card>
      )}
      {runs.length > 1 && (
        <Card flush title="All runs of the request">
          <ol className="runs">
            {runs.map((other) => (
              <li key={other.id}>
                <button type="button" aria-current={other.id === run.id} onClick={() => onOpen(other)}>
                  <span className="grow mono">{other.function}</span>
                  <Badge>{other.kind}</Badge>
                  <Badge tone={other.outcome === "success" ? "good" : "bad"}>{other.outcome}</Badge>
                  <span className="quiet">{duration(other.durationMs)}</span>
                </button>
              </li>
            ))}
          </ol>
        </Card>
      )}
      <p>
        <a href={hrefOf({ function: run.function })} onClick={onClose}>All runs of this function</a>
      </p>
    </Dialog>
  );
}
