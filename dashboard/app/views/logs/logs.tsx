/** Execution log: search, live tail, export and details of a run. The filter and the run are part of the address. */
import { useEffect, useMemo, useState } from "react";
import { ERRORS, FAILURES } from "../../server/outcomes.ts";
import { go, href, replace, useRoute } from "../../shell/route.ts";
import { Badge, Button, type Choice, Icon, SearchBar } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { count, countOf, duration, Time, timeText, utcText } from "../../ui/format.tsx";
import { copyText } from "../../ui/copy_text.ts";
import { showToast } from "../../ui/toasts.tsx";
import { runPageTask, useIsBusy } from "../../ui/page_tasks.ts";
import { saveFile } from "../../ui/save_file.ts";
import { useRequest } from "../../ui/use_request.tsx";
import { Card, Empty, Table, View } from "../../ui/view.tsx";
import { RunHistogram } from "./histogram.tsx";
import { useCallerNames } from "../../ui/caller_names.ts";
import { UserFilter } from "./user_filter.tsx";
import {
  isOutcome,
  type LoggedRun,
  OUTCOME_LABELS,
  OUTCOMES,
  type RunsPage,
  runsPage,
  useLogs,
} from "./use_logs.ts";
import { useServedTimes } from "./versions.ts";

const REQUEST_RUNS_MAX = 100;
/** Characters of a version's hash that are shown. */
const HASH_CHARS = 7;

/** Details of one run: log lines, error, and the other runs of its request. */
function RunSheet({ run, caller, onClose, onOpen, hrefOf }: {
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
          <Badge tone={run.outcome === "success" ? "good" : "bad"}>{OUTCOME_LABELS[run.outcome]}</Badge>{" "}
          <Badge>{run.kind}</Badge>
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
              <a className="mono" href={href(["versions", run.version])}>
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
      {run.args !== null && (
        <Card
          title="Arguments"
          actions={run.kind !== "route" && isWhole(run.args) &&
            <a href={href(["functions", run.function], { args: run.args })}>Run with these arguments</a>}
        >
          <pre className="result" tabIndex={0} aria-label="Arguments">{formatted(run.args)}</pre>
        </Card>
      )}
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
        <a href={hrefOf({ function: run.function })}>All runs of this function</a>
      </p>
    </Dialog>
  );
}

const rowsText = (documents: number, indexRows: number): string =>
  `${countOf(documents, "document")}, ${countOf(indexRows, "index row")}`;

/** Parses logged arguments. Returns `undefined` if they were cut. */
function parsedArgs(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Whether logged arguments are complete. */
function isWhole(args: string): boolean {
  return parsedArgs(args) !== undefined && !args.includes('"(redacted)"');
}

/** Indents JSON, unless it was cut. */
function formatted(json: string): string {
  const args = parsedArgs(json);
  return args === undefined ? json : JSON.stringify(args, null, 2);
}

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
/** Value of the time filter while the address contains a time, which need not be one of the spans. */
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
  const hasTime = given.some(isTime);
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
          <Button disabled={exporting} onClick={() => void exportRuns(filter)}>Export</Button>
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
            value: hasTime ? CHOSEN_TIME : "",
            onChange: (ms) => set({ from: ms === "" ? "" : String(Date.now() - Number(ms)), to: "" }),
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

/** Names of filters that differ from those in the address. */
const CHIP_NAMES: Partial<Record<FilterName, string>> = {
  caller: "user",
  minMs: "duration",
  to: "until",
  system: "internal functions",
};

const isTime = (name: FilterName): boolean => name === "from" || name === "to";

function chipText(name: FilterName, value: string, nameOf: (caller: string | null) => string): string {
  if (name === "caller") return nameOf(value === "anonymous" ? null : value);
  if (name === "version") return value.slice(0, HASH_CHARS);
  if (name === "system") return value === "true" ? "included" : "hidden";
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

/** Runs requested at once. */
const EXPORTED_AT_ONCE = 500;
const EXPORTED_MAX = 200_000;

/** Saves the runs of a filter as NDJSON, newest first. */
async function exportRuns(filter: string): Promise<void> {
  await runPageTask(
    { view: "logs", text: "Exporting runs…", cancelable: true },
    async ({ report, signal }) => {
      const parts: Blob[] = [];
      let exported = 0;
      for (let cursor: string | null = ""; cursor !== null && exported < EXPORTED_MAX;) {
        const params = new URLSearchParams(filter);
        params.set("limit", String(EXPORTED_AT_ONCE));
        if (cursor !== "") params.set("cursor", cursor);
        const page: RunsPage = await runsPage(params.toString(), signal);
        parts.push(new Blob(page.runs.map((run) => `${JSON.stringify(run)}\n`)));
        exported += page.runs.length;
        cursor = page.cursor;
        report(`Exporting runs: ${count(exported)} so far`);
      }
      saveFile("runs.ndjson", new Blob(parts, { type: "application/x-ndjson" }));
      if (exported >= EXPORTED_MAX) showToast(`Only the newest ${count(exported)} runs were exported.`);
    },
  );
}
