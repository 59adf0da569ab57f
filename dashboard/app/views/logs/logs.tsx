/** The execution log: search, live tail, and one run with all that is known of it. The address holds the filter. */
import { useEffect, useMemo, useState } from "react";
import { href, replace, useRoute } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { note } from "../../ui/notes.tsx";
import { Icon } from "../../ui/icon.tsx";
import { type Choice, SearchBar } from "../../ui/search_bar.tsx";
import { Table } from "../../ui/table.tsx";
import { count, duration, Time, utcText } from "../../ui/texts.tsx";
import { Card, Empty, View } from "../../ui/view.tsx";
import { Bars } from "./bars.tsx";
import { RunSheet } from "./run_sheet.tsx";
import { type LoggedRun, useLogs } from "./use_logs.ts";

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

const SPANS = [
  ["", "Time: any"],
  ["900000", "last 15 minutes"],
  ["3600000", "last hour"],
  ["86400000", "last day"],
  ["604800000", "last week"],
] as const;

const KINDS = ["query", "mutation", "action", "route"];
const LEVELS = ["info", "warn", "error"];
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
  const logs = useLogs(useSettled(filter), live);
  const set = (changes: Partial<Record<FilterName, string>>) =>
    replace(["logs"], { ...Object.fromEntries(search), ...changes });
  const choice = (name: FilterName, label: string, values: readonly string[]): Choice => ({
    label,
    value: search.get(name) ?? "",
    onChange: (value) => set({ [name]: value }),
    options: [["", `${label}: any`], ...values.map((value) => [value, value] as const)],
  });
  return (
    <View
      title="Logs"
      text="Every run of every function."
      actions={
        <>
          <Button onClick={() => void copyLink()}>
            <Icon name="link" /> Copy link
          </Button>
          <Button aria-pressed={live} onClick={() => setLive(!live)}>
            <span className="dot" data-on={live} /> {live ? "Live" : "Paused"}
          </Button>
        </>
      }
    >
      <SearchBar
        label="Text in a log line or an error"
        placeholder="Text of a line or an error"
        value={search.get("text") ?? ""}
        onChange={(text) => set({ text })}
        choices={[
          {
            label: "Time",
            value: "",
            onChange: (ms) => set({ from: String(Date.now() - Number(ms)), to: "" }),
            options: SPANS,
          },
          choice("kind", "Kind", KINDS),
          choice("outcome", "Outcome", OUTCOMES),
          choice("level", "Level", LEVELS),
        ]}
      >
        <label className="row">
          <input
            type="checkbox"
            checked={search.get("system") === "true"}
            onChange={(event) => set({ system: event.target.checked ? "true" : "" })}
          />{" "}
          the service's own
        </label>
      </SearchBar>
      {given.length > 0 && (
        <div className="row">
          {given.map((name) => (
            <button
              key={name}
              type="button"
              className="chip"
              title={isTime(name) ? utcText(Number(search.get(name))) : undefined}
              aria-label={`Remove the filter ${name}: ${chipText(name, search.get(name) ?? "")}`}
              onClick={() => set({ [name]: "" })}
            >
              {name}: {chipText(name, search.get(name) ?? "")} <Icon name="close" />
            </button>
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
          <Table head={["When", "Function", "Outcome", { number: "Took" }, "Said"]} className="log">
            {logs.runs.map((run) => (
              <tr
                key={run.id}
                onClick={() => setOpen(run)}
              >
                <td>
                  <Time at={run.at} as="clock" />
                </td>
                <td>
                  <button
                    type="button"
                    className="link mono"
                    onClick={() =>
                      setOpen(run)}
                  >
                    {run.function}
                  </button>{" "}
                  <Badge>{run.kind}</Badge>
                </td>
                <td>
                  <Badge tone={run.outcome === "success" ? "good" : "bad"}>{run.outcome}</Badge>
                </td>
                <td className="number">{duration(run.durationMs)}</td>
                <td className="mono said">{run.error?.message ?? run.logLines.at(-1) ?? ""}</td>
              </tr>
            ))}
          </Table>
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
          onOpen={setOpen}
          hrefOf={(changes) => href(["logs"], { ...changes })}
        />
      )}
    </View>
  );
}

/** A text that is being typed is searched for when it stands still for a moment. */
const TYPING_MS = 250;

function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), TYPING_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Pages that are not served over HTTPS may not write to the clipboard. */
async function copyLink(): Promise<void> {
  try {
    await navigator.clipboard.writeText(location.href);
    note("The link with this filter is copied.");
  } catch {
    note("The address of this page holds the filter: copy it from there.");
  }
}

const isTime = (name: FilterName): boolean => name === "from" || name === "to";

function chipText(name: FilterName, value: string): string {
  return isTime(name) ? new Date(Number(value)).toLocaleString() : value;
}
