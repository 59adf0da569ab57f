/** The execution log: search, live tail, and one run with all that is known of it. The address holds the filter. */
import { useMemo, useState } from "react";
import { href, replace, useRoute } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { count, duration, Time } from "../../ui/texts.tsx";
import { Card, Empty, View } from "../../ui/view.tsx";
import { RunSheet } from "./run_sheet.tsx";
import { type Bar, type LoggedRun, useLogs } from "./use_logs.ts";

const FILTERS = [
  "function",
  "kind",
  "outcome",
  "level",
  "text",
  "caller",
  "request",
  "from",
  "to",
  "system",
] as const;
type FilterName = (typeof FILTERS)[number];

const OUTCOMES = ["success", "user_error", "error", "timeout", "refused"];

export function Logs() {
  const { search } = useRoute();
  const [live, setLive] = useState(true);
  const [open, setOpen] = useState<LoggedRun | null>(null);
  const given = FILTERS.filter((name) => (search.get(name) ?? "") !== "");
  const filter = useMemo(() => {
    const params = new URLSearchParams();
    for (const name of FILTERS) {
      const value = search.get(name) ?? "";
      if (value !== "") params.set(name, value);
    }
    // Of the app, unless the service's own runs are asked for.
    if (!params.has("system")) params.set("system", "false");
    return params.toString();
  }, [search]);
  const logs = useLogs(filter, live);
  const set = (changes: Partial<Record<FilterName, string>>) =>
    replace(["logs"], { ...Object.fromEntries(search), ...changes });
  return (
    <View
      title="Logs"
      text="Every run of every function."
      actions={
        <Button aria-pressed={live} onClick={() => setLive(!live)}>
          <Icon name={live ? "check" : "more"} /> {live ? "Live" : "Paused"}
        </Button>
      }
    >
      <div className="row">
        <input
          className="input grow"
          type="search"
          placeholder="Text in a log line or an error"
          aria-label="Text in a log line or an error"
          value={search.get("text") ?? ""}
          onChange={(event) => set({ text: event.target.value })}
        />
        <Choice label="Kind" name="kind" choices={["query", "mutation", "action", "route"]} set={set} />
        <Choice label="Outcome" name="outcome" choices={OUTCOMES} set={set} />
        <Choice label="Level" name="level" choices={["info", "warn", "error"]} set={set} />
        <label className="row">
          <input
            type="checkbox"
            checked={search.get("system") === "true"}
            onChange={(event) => set({ system: event.target.checked ? "true" : "" })}
          />{" "}
          the service's own
        </label>
      </div>
      {given.length > 0 && (
        <div className="row">
          {given.map((name) => (
            <Button
              key={name}
              aria-label={`Remove the filter ${name}`}
              onClick={() => set({ [name]: "" })}
            >
              {name}: {chipText(name, search.get(name) ?? "")} <Icon name="close" />
            </Button>
          ))}
        </div>
      )}
      <Bars bars={logs.bars} onChoose={({ from, to }) => set({ from: String(from), to: String(to) })} />
      {logs.error !== null && <p className="field-error" role="alert">{logs.error}</p>}
      {logs.missed > 0 && (
        <p className="banner" role="status">
          {count(logs.missed)} runs came faster than this page could show them.
        </p>
      )}
      <Card flush>
        {logs.runs.length === 0 && !logs.busy && <Empty title="No run is found" />}
        {logs.runs.length > 0 && (
          <table className="table">
            <thead>
              <tr>
                <th>When</th>
                <th>Function</th>
                <th>Outcome</th>
                <th className="number">Took</th>
                <th>Said</th>
              </tr>
            </thead>
            <tbody>
              {logs.runs.map((run) => (
                <tr key={run.id}>
                  <td>
                    <Time at={run.at} />
                  </td>
                  <td>
                    <Button tone="plain" className="mono" onClick={() => setOpen(run)}>{run.function}</Button>
                  </td>
                  <td>
                    <Badge tone={run.outcome === "success" ? "good" : "bad"}>{run.outcome}</Badge>
                  </td>
                  <td className="number">{duration(run.durationMs)}</td>
                  <td className="mono">{run.error?.message ?? run.logLines.at(-1) ?? ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {logs.more !== null && (
          <div className="empty">
            <Button disabled={logs.busy} onClick={logs.more}>Look further back</Button>
          </div>
        )}
      </Card>
      {open !== null && (
        <RunSheet
          run={open}
          onClose={() => setOpen(null)}
          hrefOf={(changes) => href(["logs"], { ...changes })}
        />
      )}
    </View>
  );
}

function chipText(name: FilterName, value: string): string {
  return name === "from" || name === "to" ? new Date(Number(value)).toLocaleTimeString() : value;
}

function Choice({ label, name, choices, set }: {
  readonly label: string;
  readonly name: FilterName;
  readonly choices: readonly string[];
  readonly set: (changes: Partial<Record<FilterName, string>>) => void;
}) {
  const { search } = useRoute();
  return (
    <select
      className="input fit"
      aria-label={label}
      value={search.get(name) ?? ""}
      onChange={(event) => set({ [name]: event.target.value })}
    >
      <option value="">{label}: any</option>
      {choices.map((choice) => <option key={choice} value={choice}>{choice}</option>)}
    </select>
  );
}

/** Runs over time; a bar is a filter for its time. */
function Bars({ bars, onChoose }: { readonly bars: readonly Bar[]; readonly onChoose: (bar: Bar) => void }) {
  const most = Math.max(1, ...bars.map(({ runs }) => runs));
  if (bars.length === 0) return null;
  return (
    <div className="bars" role="group" aria-label="Runs over time">
      {bars.map((bar) => (
        <button
          key={bar.from}
          type="button"
          tabIndex={bar.runs === 0 ? -1 : 0}
          aria-label={`${count(bar.runs)} runs, ${count(bar.failed)} failed, from ${
            new Date(bar.from).toLocaleTimeString()
          }`}
          onClick={() => onChoose(bar)}
        >
          <span style={{ height: `${100 * (bar.runs - bar.failed) / most}%` }} />
          <span data-failed="true" style={{ height: `${100 * bar.failed / most}%` }} />
        </button>
      ))}
    </div>
  );
}
