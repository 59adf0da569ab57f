/** Performance of functions in the last hour and day: a table of all functions, and details of one. */
import { useState } from "react";
import type { FunctionStats, Stats, StatsOfFunction } from "../../server/stats.ts";
import type { LoggedRun } from "../../../../mod/ops/log/run_record.ts";
import { ERRORS } from "../../server/outcomes.ts";
import { href } from "../../shell/route.ts";
import { Badge } from "../../ui/controls.tsx";
import { Card, Loading, TableCard } from "../../ui/view.tsx";
import { count, duration, tenths, Time } from "../../ui/format.tsx";
import { useRequest } from "../../ui/use_request.tsx";

const ASKED_EVERY_MS = 30_000;
const ERRORS_SHOWN_MAX = 5;
/** Name of all functions that do not exist, in statistics. */
const UNKNOWN = "(unknown)";

type Window = "minute" | "hour" | "day";
type Column = "calls" | "errorRate" | "p50" | "p95" | "p99";

const COLUMNS: readonly { readonly name: Column; readonly title: string }[] = [
  { name: "calls", title: "Calls" },
  { name: "errorRate", title: "Errors" },
  { name: "p50", title: "p50" },
  { name: "p95", title: "p95" },
  { name: "p99", title: "p99" },
];

function textOf(stats: FunctionStats, column: Column): string {
  const value = stats[column];
  if (value === null) return "–";
  if (column === "calls") return count(value);
  return column === "errorRate" ? shareText(value) : duration(value);
}

function shareText(share: number): string {
  return share === 0 ? "0%" : share < 0.001 ? "< 0.1%" : `${tenths(share * 100)}%`;
}

const KIND_TONES = { query: "good", mutation: "accent", action: "warn" } as const;

export function KindBadge({ kind }: Pick<StatsOfFunction, "kind">) {
  return kind === "route" ? <Badge>{kind}</Badge> : <Badge tone={KIND_TONES[kind]}>{kind}</Badge>;
}

/** Sortable by every column. */
export function AllFunctions() {
  const { value: stats, error } = useRequest<Stats>("/api/admin/stats", ASKED_EVERY_MS);
  const [window, setWindow] = useState<Window>("hour");
  const [by, setBy] = useState<Column>("calls");
  if (stats === undefined) return error === null ? <Loading /> : <p className="field-error">{error}</p>;
  const rows = stats.functions.flatMap((row) => {
    const figures = row[window];
    return figures === null || row.function.startsWith("_") ? [] : [{ ...row, figures }];
  }).toSorted((a, b) => (b.figures[by] ?? 0) - (a.figures[by] ?? 0));
  return (
    <TableCard
      title="Performance"
      titleActions={
        <select
          className="input fit"
          aria-label="Time range"
          value={window}
          onChange={(event) => setWindow(event.target.value as Window)}
        >
          <option value="minute">Last minute</option>
          <option value="hour">Last hour</option>
          <option value="day">Last 24 hours</option>
        </select>
      }
      empty={{ title: "No runs in this time range" }}
      head={[
        "Function",
        ...COLUMNS.map(({ name, title }) => ({
          number: title,
          sort: { by: name === by, onSort: () => setBy(name) },
        })),
      ]}
      rows={rows}
      row={({ function: path, kind, figures }) => (
        <tr key={`${kind} ${path}`}>
          <td className="wrap">
            {path === UNKNOWN
              ? (
                <>
                  Functions that do not exist <KindBadge kind={kind} />
                  <p className="quiet small">
                    Clients call names that the live version lacks. The{" "}
                    <a href={href(["logs"], { kind, outcome: "user_error", text: "There is no function" })}>
                      logs
                    </a>{" "}
                    name them.
                  </p>
                </>
              )
              : (
                <>
                  <a className="mono" href={href(["functions", path])}>{path}</a> <KindBadge kind={kind} />
                </>
              )}
          </td>
          {COLUMNS.map(({ name }) => (
            <td
              key={name}
              className="number"
              data-tone={name === "errorRate" && figures.errors > 0 ? "bad" : undefined}
            >
              {textOf(figures, name)}
            </td>
          ))}
        </tr>
      )}
    />
  );
}

export function FunctionPerformance({ path }: { readonly path: string }) {
  const stats = useRequest<Stats>("/api/admin/stats", ASKED_EVERY_MS).value;
  const failed = useRequest<{ readonly runs: readonly LoggedRun[] }>(
    `/api/admin/logs?${new URLSearchParams({
      function: path,
      outcome: ERRORS,
      limit: String(ERRORS_SHOWN_MAX),
    })}`,
    ASKED_EVERY_MS,
  ).value;
  const row = stats?.functions.find(({ function: name }) => name === path);
  return (
    <Card
      title="Performance"
      actions={<a href={href(["logs"], { function: path })}>All runs</a>}
    >
      <div className="stack">
        {stats === undefined ? <p className="quiet">…</p> : <Figures row={row} />}
        {failed !== undefined && failed.runs.length > 0 && (
          <div>
            <h3>Recent errors</h3>
            <ul className="errors">
              {failed.runs.map(({ id, at, error, requestId }) => (
                <li key={id}>
                  <a href={href(["logs"], { request: requestId })}>
                    <Time at={at} as="clock" />
                  </a>{" "}
                  <span className="mono">{error?.message ?? ""}</span>
                </li>
              ))}
            </ul>
          </div>
        )}
      </div>
    </Card>
  );
}

function Figures({ row }: { readonly row: StatsOfFunction | undefined }) {
  const spans = [["Last hour", row?.hour ?? null], ["Last 24 hours", row?.day ?? null]] as const;
  return (
    <div className="figures">
      {spans.map(([title, figures]) => (
        <div key={title} className="row">
          <span className="figures-title">{title}</span>
          {figures === null ? <span className="quiet">No runs</span> : (
            <dl>
              {COLUMNS.map(({ name, title }) => (
                <div key={name}>
                  <dt>{title}</dt>
                  <dd data-tone={name === "errorRate" && figures.errors > 0 ? "bad" : undefined}>
                    {textOf(figures, name)}
                  </dd>
                </div>
              ))}
            </dl>
          )}
        </div>
      ))}
    </div>
  );
}
