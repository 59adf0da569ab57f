/** Details of one run: arguments, error, log lines, and the other runs of its request. */
import { Fragment } from "react";
import { href } from "../../shell/route.ts";
import { Badge } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { count, countOf, duration, Time } from "../../ui/format.tsx";
import { useRequest } from "../../ui/use_request.tsx";
import { Card } from "../../ui/view.tsx";
import { isWhole, parsedArgs } from "../../server/logged_args.ts";
import { type LoggedRun, OUTCOME_LABELS } from "./use_logs.ts";

const REQUEST_RUNS_MAX = 100;
/** Characters of a version's hash that are shown. */
export const HASH_CHARS = 7;

/** Like the colors of the histogram. */
const OUTCOME_TONES = {
  success: "good",
  user_error: "warn",
  error: "bad",
  timeout: "bad",
  refused: undefined,
} as const;

export function OutcomeBadge({ outcome }: Pick<LoggedRun, "outcome">) {
  const tone = OUTCOME_TONES[outcome];
  return <Badge {...tone !== undefined && { tone }}>{OUTCOME_LABELS[outcome]}</Badge>;
}

export function RunSheet({ run, caller, onClose, onOpen, hrefOf }: {
  readonly run: LoggedRun;
  /** Name of the caller. */
  readonly caller: string;
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
          <OutcomeBadge outcome={run.outcome} /> <Badge>{run.kind}</Badge>
        </dd>
        <dt>Duration</dt>
        <dd>{duration(run.durationMs)}, after {duration(run.queuedMs)} in the queue</dd>
        <dt>Called by</dt>
        <dd>
          {run.caller === null ? caller : (
            <>
              {run.caller.startsWith("user:")
                ? <a href={href(["users", run.caller.slice("user:".length)])}>{caller}</a>
                : caller} · <a href={hrefOf({ caller: run.caller })}>runs of this caller</a>
            </>
          )}
        </dd>
        <dt>Request</dt>
        <dd>
          <a className="mono" href={hrefOf({ request: run.requestId })}>
            {run.requestId}
          </a>
        </dd>
        {run.version !== null && (
          <>
            <dt>Version</dt>
            <dd>
              <a className="mono" href={href(["versions", run.version], sourceOf(run))}>
                {run.version.slice(0, HASH_CHARS)}
              </a>{" "}
              · <a href={hrefOf({ version: run.version })}>runs of this version</a>
            </dd>
          </>
        )}
        <dt>Commit</dt>
        <dd>{run.ts === null ? "–" : count(run.ts)}</dd>
        <dt>Read</dt>
        <dd>{rowsText(run.documentsRead, run.indexRowsRead)}</dd>
        <dt>Wrote</dt>
        <dd>{rowsText(run.documentsWritten, run.indexRowsWritten)}</dd>
      </dl>
      <Arguments run={run} />
      {run.error !== null && (
        <Card title="Error">
          <pre className="result">
            {run.error.message}
            <Stack text={run.error.stack ?? ""} version={run.version} />
          </pre>
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
                  <OutcomeBadge outcome={other.outcome} />
                  <span className="quiet">{duration(other.durationMs)}</span>
                </button>
              </li>
            ))}
          </ol>
        </Card>
      )}
      <p>
        <a href={hrefOf({ function: run.function })}>All runs of this function</a>
      </p>
    </Dialog>
  );
}

/** Where a function is declared: its file, without the extension, and its export. Routes do not name theirs. */
function sourceOf({ function: path, kind }: LoggedRun): Readonly<Record<string, string>> {
  const colon = path.lastIndexOf(":");
  return kind === "route" || colon < 0 ? {} : { file: path.slice(0, colon), export: path.slice(colon + 1) };
}

function Arguments({ run: { args, function: path, kind } }: { readonly run: LoggedRun }) {
  // Routes and functions of the service are logged without arguments.
  if (args === null && (kind === "route" || path.startsWith("_"))) return null;
  return (
    <Card
      title="Arguments"
      actions={args !== null && kind !== "route" && isWhole(args) &&
        <a href={href(["functions", path], { args })}>Run with these arguments</a>}
    >
      {args === null
        ? (
          <p className="quiet">
            Not recorded for this run. Turn on <a href={href(["settings", "logArgs"])}>Log arguments</a>{" "}
            to record those of later runs.
          </p>
        )
        : <pre className="result" tabIndex={0} aria-label="Arguments">{formatted(args)}</pre>}
    </Card>
  );
}

/** A frame such as `at handler (orders.ts:42:37)` or `at orders.ts:42:37`. */
const FRAME = /^(\s*at (?:.* \()?)([^()]+):(\d+):(\d+)(\)?)$/;

/** A stack whose frames link to the lines in the sources of the version. */
function Stack({ text, version }: { readonly text: string; readonly version: string | null }) {
  return text.split("\n").filter((line) => line !== "").map((frame, index) => {
    const [, before, file = "", line = "", column, after] = FRAME.exec(frame) ?? [];
    return (
      <Fragment key={index}>
        {"\n"}
        {version === null || before === undefined ? frame : (
          <>
            {before}
            <a href={href(["versions", version], { file, line })}>{`${file}:${line}:${column}`}</a>
            {after}
          </>
        )}
      </Fragment>
    );
  });
}

const rowsText = (documents: number, indexRows: number): string =>
  `${countOf(documents, "document")}, ${countOf(indexRows, "index row")}`;

/** Indents JSON, unless it was cut. */
function formatted(json: string): string {
  const args = parsedArgs(json);
  return args === undefined ? json : JSON.stringify(args, null, 2);
}
