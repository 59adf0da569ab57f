/** Details of one run: log lines, error, and the other runs of its request. */
import { Badge } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { count, duration, Time } from "../../ui/format.tsx";
import { useRequest } from "../../ui/use_request.tsx";
import { Card } from "../../ui/view.tsx";
import { type LoggedRun, OUTCOME_LABELS } from "./use_logs.ts";

const REQUEST_RUNS_MAX = 100;

export function RunSheet({ run, onClose, onOpen, hrefOf }: {
  readonly run: LoggedRun;
  readonly onOpen: (run: LoggedRun) => void;
  readonly onClose: () => void;
  /** Returns the address of the log view with a filter. */
  readonly hrefOf: (filter: Readonly<Record<string, string>>) => string;
}) {
  const request = useRequest<{ readonly runs: readonly LoggedRun[] }>(
    `/api/admin/logs?request=${run.requestId}&limit=${REQUEST_RUNS_MAX}`,
  ).value;
  // By start time.
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
          <Badge tone={run.outcome === "success" ? "good" : "bad"}>{OUTCOME_LABELS[run.outcome]}</Badge>{" "}
          <Badge>{run.kind}</Badge>
        </dd>
        <dt>Duration</dt>
        <dd>{duration(run.durationMs)}, after {duration(run.queuedMs)} in the queue</dd>
        <dt>Called by</dt>
        <dd>
          {run.caller === null
            ? "anonymous"
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
        <Card flush title="Runs of this request">
          <ol className="runs">
            {runs.map((other) => (
              <li key={other.id}>
                <button type="button" aria-current={other.id === run.id} onClick={() => onOpen(other)}>
                  <span className="grow mono">{other.function}</span>
                  <Badge>{other.kind}</Badge>
                  <Badge tone={other.outcome === "success" ? "good" : "bad"}>
                    {OUTCOME_LABELS[other.outcome]}
                  </Badge>
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
