/** Execution log: search, live tail and export. The filter and the open run are part of the address. */
import { useEffect, useMemo, useState } from "react";
import { ERRORS, FAILURES } from "../../server/outcomes.ts";
import { go, href, replace, useRoute } from "../../shell/route.ts";
import { Badge, Button, type Choice, Icon, SearchBar } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { count, duration, Time, timeText, utcText } from "../../ui/format.tsx";
import { copyText } from "../../ui/copy_text.ts";
import { showToast } from "../../ui/toasts.tsx";
import { Menu } from "../../ui/menu.tsx";
import { useIsBusy } from "../../ui/page_tasks.ts";
import { Card, Empty, Table, View } from "../../ui/view.tsx";
import { useSettled } from "../../ui/use_request.tsx";
import { useCallerNames } from "../../ui/caller_names.ts";
import { exportRuns } from "./export_runs.ts";
import { RunHistogram } from "./histogram.tsx";
import { HASH_CHARS, OutcomeBadge, RunSheet } from "./run_sheet.tsx";
import { isOutcome, type LoggedRun, OUTCOME_LABELS, OUTCOMES, runsPage, useLogs } from "./use_logs.ts";
import { UserFilter } from "./user_filter.tsx";
import { useServedTimes } from "./versions.ts";

const FILTERS = [
  "function",
  "kind",
  "outcome",
  "level",
  "text",
  "caller",
  "request",
  "minMs",
  "version",
  "last",
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
/** Value of the time filter while the address contains another time. */
const CHOSEN_TIME = "chosen";

const DURATIONS = [
  ["", "Duration: any"],
  ["100", "Over 100 ms"],
  ["1000", "Over 1 s"],
  ["10000", "Over 10 s"],
] as const;

const KINDS = ["query", "mutation", "action", "route"];
const LEVELS = ["info", "warn", "error"];

export function Logs() {
  const { search } = useRoute();
  const [live, setLive] = useState(true);
  const exporting = useIsBusy("logs");
  const [opened, setOpened] = useState<LoggedRun | null>(null);
  const given = FILTERS.filter((name) => (search.get(name) ?? "") !== "");
  const last = search.get("last") ?? "";
  // The span keeps its start while other parts of the address change.
  const spanFrom = useMemo(() => /^\d+$/.test(last) ? Date.now() - Number(last) : null, [last]);
  const filter = useMemo(() => {
    const params = new URLSearchParams();
    if (spanFrom !== null) params.set("from", String(spanFrom));
    for (const name of FILTERS) {
      const value = search.get(name) ?? "";
      if (value !== "" && name !== "last") params.set(name, value);
    }
    // Hide internal functions by default.
    if (!params.has("system")) params.set("system", "false");
    return params.toString();
  }, [search, spanFrom]);
  const logs = useLogs(useSettled(filter), live);
  const hasTime = given.some(isTime) || !SPANS.some(([ms]) => ms === last);
  const here = Object.fromEntries(search);
  const set = (changes: Partial<Record<FilterName, string>>) =>
    replace(["logs"], { ...here, run: "", ...changes });
  const served = useServedTimes();
  const version = search.get("version") ?? "";
  const versions = [...new Set([...(version === "" ? [] : [version]), ...served.map(({ hash }) => hash)])];
  const nameOf = useCallerNames(logs.runs.map(({ caller }) => caller));
  const runId = search.get("run");
  const run = useRun(runId, [...(opened === null ? [] : [opened]), ...logs.runs]);
  const showRun = (shown: LoggedRun | null) => {
    setOpened(shown);
    go(["logs"], { ...here, run: shown === null ? "" : String(shown.id) });
  };
  const choice = (name: FilterName, label: string, values: readonly string[]): Choice => ({
    label,
    value: search.get(name) ?? "",
    onChange: (value) => set({ [name]: value }),
    options: [
      ["", `${label}: any`],
      ...values.map((value) => [value, valueText(value)] as const),
    ],
  });
  return (
    <View
      title="Logs"
      text="All function runs."
      actions={
        <>
          <Menu
            label="Export"
            trigger="Export"
            items={[
              { text: "As CSV", disabled: exporting, run: () => void exportRuns(filter, "csv") },
              { text: "As NDJSON", disabled: exporting, run: () => void exportRuns(filter, "ndjson") },
            ]}
          />
          <Button
            onClick={() =>
              void copyText(location.href, "Link copied.", "Copy the link from the address bar.")}
          >
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
            value: hasTime ? CHOSEN_TIME : last,
            onChange: (last) => set({ last, from: "", to: "" }),
            options: hasTime ? [...SPANS, [CHOSEN_TIME, "Custom range"]] : SPANS,
          },
          choice("kind", "Kind", KINDS),
          choice("outcome", "Outcome", [FAILURES, ERRORS, ...OUTCOMES]),
          choice("level", "Level", LEVELS),
          {
            label: "Duration",
            value: search.get("minMs") ?? "",
            onChange: (minMs) => set({ minMs }),
            options: DURATIONS,
          },
          ...(versions.length === 0 ? [] : [{
            label: "Version",
            value: search.get("version") ?? "",
            onChange: (version: string) => set({ version }),
            options: [
              ["", "Version: any"] as const,
              ...versions.map((hash) => [hash, hash.slice(0, HASH_CHARS)] as const),
            ],
          }]),
        ]}
      >
        <UserFilter onChoose={(caller) => set({ caller })} />
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
              aria-label={`Remove filter ${CHIP_NAMES[name] ?? name}: ${
                chipText(name, search.get(name) ?? "", nameOf)
              }`}
              onClick={() => set({ [name]: "" })}
            >
              {CHIP_NAMES[name] ?? name}: {chipText(name, search.get(name) ?? "", nameOf)}{" "}
              <Icon name="close" />
            </button>
          ))}
        </div>
      )}
      <RunHistogram
        bars={logs.bars}
        served={served}
        onChoose={({ from, to }) => set({ last: "", from: String(from), to: String(to) })}
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
          <Table
            head={["Time", "Function", "User", "Outcome", { number: "Duration" }, "Message"]}
            className="log"
          >
            {logs.runs.map((run) => (
              <tr
                key={run.id}
                onClick={() => showRun(run)}
              >
                <td>
                  <Time at={run.at} as="clock" />
                </td>
                <td>
                  <button
                    type="button"
                    className="link mono"
                    title={run.function}
                    onClick={(event) => {
                      event.stopPropagation();
                      showRun(run);
                    }}
                  >
                    {run.function}
                  </button>{" "}
                  <span className="kind">
                    <Badge>{run.kind}</Badge>
                  </span>
                </td>
                <td className={run.caller === null ? "caller quiet" : "caller"}>{nameOf(run.caller)}</td>
                <td>
                  <OutcomeBadge outcome={run.outcome} />
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
      {runId !== null && run === null && (
        <Dialog open form="side" title="Run" onClose={() => showRun(null)}>
          <Empty title="This run is not in the log" />
        </Dialog>
      )}
      {run && (
        <RunSheet
          run={run}
          caller={nameOf(run.caller)}
          onClose={() => showRun(null)}
          onOpen={showRun}
          hrefOf={(changes) => href(["logs"], { ...changes })}
        />
      )}
    </View>
  );
}

/** Names of filters that differ from those in the address. */
const CHIP_NAMES: Partial<Record<FilterName, string>> = {
  caller: "user",
  minMs: "duration",
  last: "time",
  to: "until",
  system: "internal functions",
};

const isTime = (name: FilterName): boolean => name === "from" || name === "to";

function chipText(name: FilterName, value: string, nameOf: (caller: string | null) => string): string {
  if (name === "caller") return nameOf(value === "anonymous" ? null : value);
  if (name === "version") return value.slice(0, HASH_CHARS);
  if (name === "system") return value === "true" ? "included" : "hidden";
  if (name === "last") return SPANS.find(([ms]) => ms === value)?.[1] ?? `last ${duration(Number(value))}`;
  if (name === "minMs") return `at least ${duration(Number(value))}`;
  return isTime(name) ? timeText(Number(value)) : valueText(value);
}

function valueText(value: string): string {
  if (value === FAILURES) return "any failure";
  if (value === ERRORS) return "error, timeout or refused";
  return isOutcome(value) ? OUTCOME_LABELS[value] : value;
}

/** Returns a run by ID: one of those given, or from the server. `null` if there is none, `undefined` while it loads. */
function useRun(id: string | null, known: readonly LoggedRun[]): LoggedRun | null | undefined {
  const here = known.find((run) => String(run.id) === id);
  const [found, setFound] = useState<{ readonly id: string; readonly run: LoggedRun | null } | null>(null);
  const wanted = id !== null && here === undefined && /^\d{1,15}$/.test(id) ? id : null;
  useEffect(() => {
    if (wanted === null) return;
    const ending = new AbortController();
    // The cursor is the end of the page before.
    runsPage(`cursor=${Number(wanted) + 1}&limit=1`, ending.signal).then(({ runs: [run] }) =>
      setFound({ id: wanted, run: run !== undefined && String(run.id) === wanted ? run : null })
    ).catch((error) => {
      if (!ending.signal.aborted) showToast(`The run could not be loaded: ${error.message}`, { tone: "bad" });
    });
    return () => ending.abort();
  }, [wanted]);
  if (id === null) return null;
  return here ?? (found?.id === id ? found.run : wanted === null ? null : undefined);
}
