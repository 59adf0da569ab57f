/** Execution log: search, live tail and details of a run. The filter is part of the address. */
import { useEffect, useMemo, useState } from "react";
import { href, replace, useRoute } from "../../shell/route.ts";
import { Badge, Button, type Choice, Icon, SearchBar } from "../../ui/controls.tsx";
import { showToast } from "../../ui/toasts.tsx";
import { Card, Empty, Table, View } from "../../ui/view.tsx";
import { count, duration, Time, utcText } from "../../ui/format.tsx";
import { RunHistogram } from "./histogram.tsx";
import { RunSheet } from "./run_sheet.tsx";
import { type LoggedRun, OUTCOME_LABELS, useLogs } from "./use_logs.ts";

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
  ["", "Any time"],
  ["900000", "Last 15 minutes"],
  ["3600000", "Last hour"],
  ["86400000", "Last 24 hours"],
  ["604800000", "Last 7 days"],
] as const;

const KINDS = ["query", "mutation", "action", "route"];
const LEVELS = ["info", "warn", "error"];

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
    // Hide internal functions by default.
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
    options: [
      ["", `${label}: any`],
      ...values.map((value) => [value, OUTCOME_LABELS[value] ?? value] as const),
    ],
  });
  return (
    <View
      title="Logs"
      text="All function runs."
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
        label="Search log lines and errors"
        placeholder="Search log lines and errors"
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
          choice("outcome", "Outcome", Object.keys(OUTCOME_LABELS)),
          choice("level", "Level", LEVELS),
        ]}
      >
        <label className="row">
          <input
            type="checkbox"
            checked={search.get("system") === "true"}
            onChange={(event) => set({ system: event.target.checked ? "true" : "" })}
          />{" "}
          Include internal functions
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
              aria-label={`Remove filter ${name}: ${chipText(name, search.get(name) ?? "")}`}
              onClick={() => set({ [name]: "" })}
            >
              {name}: {chipText(name, search.get(name) ?? "")} <Icon name="close" />
            </button>
          ))}
        </div>
      )}
      <RunHistogram
        bars={logs.bars}
        onChoose={({ from, to }) => set({ from: String(from), to: String(to) })}
      />
      {logs.error !== null && <p className="field-error" role="alert">{logs.error}</p>}
      {logs.missed > 0 && (
        <p className="banner" role="status">
          {count(logs.missed)} runs were skipped because they arrived faster than this page could show them.
        </p>
      )}
      <Card flush>
        {logs.runs.length === 0 && !logs.busy && <Empty title="No matching runs" />}
        {logs.runs.length > 0 && (
          <Table head={["Time", "Function", "Outcome", { number: "Duration" }, "Message"]} className="log">
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
                  <Badge tone={run.outcome === "success" ? "good" : "bad"}>
                    {OUTCOME_LABELS[run.outcome]}
                  </Badge>
                </td>
                <td className="number">{duration(run.durationMs)}</td>
                <td className="mono message">{run.error?.message ?? run.logLines.at(-1) ?? ""}</td>
              </tr>
            ))}
          </Table>
        )}
        {logs.more !== null && (
          <div className="empty">
            <Button disabled={logs.busy} onClick={logs.more}>Load older</Button>
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

/** Delay before a changed filter is applied, so that typing does not query on every key. */
const TYPING_MS = 250;

function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), TYPING_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Copies the address. The clipboard is unavailable on pages without HTTPS. */
async function copyLink(): Promise<void> {
  try {
    await navigator.clipboard.writeText(location.href);
    showToast("Link copied.");
  } catch {
    showToast("Copy the link from the address bar. The clipboard needs HTTPS.");
  }
}

const isTime = (name: FilterName): boolean => name === "from" || name === "to";

function chipText(name: FilterName, value: string): string {
  return isTime(name) ? new Date(Number(value)).toLocaleString() : value;
}
