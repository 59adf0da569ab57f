/** Exports the runs of a filter, newest first, as CSV or as NDJSON. */
import { callerEmails } from "../../ui/caller_names.ts";
import { count, countOf } from "../../ui/format.tsx";
import { runPageTask } from "../../ui/page_tasks.ts";
import { saveFile } from "../../ui/save_file.ts";
import { showToast } from "../../ui/toasts.tsx";
import { type LoggedRun, OUTCOME_LABELS, type RunsPage, runsPage } from "./use_logs.ts";

/** Runs requested at once. */
const EXPORTED_AT_ONCE = 500;
const EXPORTED_MAX = 200_000;

/** Returns the email address of a caller, or `null`. */
type EmailOf = (caller: string | null) => string | null;

interface ExportFormat {
  readonly type: string;
  /** Precedes the runs. */
  readonly head: string;
  readonly textOf: (run: LoggedRun, emailOf: EmailOf) => string;
}

const timeOf = ({ at }: LoggedRun): string => new Date(at).toISOString();

/** Columns of a CSV file. */
const COLUMNS: Readonly<Record<string, (run: LoggedRun, emailOf: EmailOf) => string | number | null>> = {
  time: timeOf,
  function: (run) => run.function,
  kind: ({ kind }) => kind,
  outcome: ({ outcome }) => OUTCOME_LABELS[outcome],
  user: ({ caller }, emailOf) => emailOf(caller),
  caller: ({ caller }) => caller,
  durationMs: ({ durationMs }) => durationMs,
  queuedMs: ({ queuedMs }) => queuedMs,
  error: ({ error }) => error?.message ?? null,
  errorCode: ({ error }) => error?.code ?? null,
  stack: ({ error }) => error?.stack ?? null,
  logLines: ({ logLines }) => logLines.join("\n"),
  args: ({ args }) => args,
  requestId: ({ requestId }) => requestId,
  ts: ({ ts }) => ts,
  version: ({ version }) => version,
  documentsRead: (run) => run.documentsRead,
  indexRowsRead: (run) => run.indexRowsRead,
  documentsWritten: (run) => run.documentsWritten,
  indexRowsWritten: (run) => run.indexRowsWritten,
};

const FORMATS = {
  csv: {
    type: "text/csv",
    head: csvRow(Object.keys(COLUMNS)),
    textOf: (run, emailOf) => csvRow(Object.values(COLUMNS).map((cellOf) => cellOf(run, emailOf))),
  },
  ndjson: {
    type: "application/x-ndjson",
    head: "",
    textOf: (run, emailOf) =>
      `${
        JSON.stringify({
          ...run,
          time: timeOf(run),
          outcome: OUTCOME_LABELS[run.outcome],
          user: emailOf(run.caller),
        })
      }\n`,
  },
} as const satisfies Readonly<Record<string, ExportFormat>>;

function csvRow(cells: readonly (string | number | null)[]): string {
  const texts = cells.map((cell) => {
    // Spreadsheets would calculate texts of callers that begin like a formula.
    const text = typeof cell === "string" ? cell.replace(/^[=+\-@\t\r]/, "'$&") : String(cell ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${texts.join(",")}\r\n`;
}

/** Saves a file with the runs. Outcomes and users are those shown, besides the caller's ID. */
export async function exportRuns(filter: string, format: keyof typeof FORMATS): Promise<void> {
  const { type, head, textOf }: ExportFormat = FORMATS[format];
  await runPageTask(
    { view: "logs", text: "Exporting runs…", cancelable: true },
    async ({ report, signal }) => {
      const parts: Blob[] = [new Blob([head])];
      let exported = 0;
      for (let cursor: string | null = ""; cursor !== null && exported < EXPORTED_MAX;) {
        const params = new URLSearchParams(filter);
        params.set("limit", String(EXPORTED_AT_ONCE));
        if (cursor !== "") params.set("cursor", cursor);
        const page: RunsPage = await runsPage(params.toString(), signal);
        const emailOf = await callerEmails(page.runs.map(({ caller }) => caller));
        parts.push(new Blob(page.runs.map((run) => textOf(run, emailOf))));
        exported += page.runs.length;
        cursor = page.cursor;
        report(`Exporting runs: ${count(exported)} so far`);
      }
      const name = `runs.${format}`;
      saveFile(name, new Blob(parts, { type }));
      showToast(
        exported >= EXPORTED_MAX
          ? `${name} has the newest ${count(exported)} runs. Narrow the filter to export the others.`
          : `${countOf(exported, "run")} saved in ${name}.`,
      );
    },
  );
}
