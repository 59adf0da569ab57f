/** Imports documents from a file: first a dry run with a report by row, then the import. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { adminSession } from "../../server/admin_session.ts";
import { sendImport } from "../../server/import_status.ts";
import { propertiesOf, requiredOf } from "../../server/json_schema.ts";
import { Button, SelectField, TextField } from "../../ui/controls.tsx";
import { CancelButton, Dialog } from "../../ui/dialog.tsx";
import { runPageTask } from "../../ui/page_tasks.ts";
import { showToast } from "../../ui/toasts.tsx";
import { Table } from "../../ui/view.tsx";
import { count } from "../../ui/format.tsx";
import { CSV_HEAD_CHARS, type CsvColumn, csvColumns, matchingFields } from "./csv_columns.ts";

interface Report {
  readonly rows: number;
  readonly faults: readonly { readonly line: number | null; readonly message: string }[];
  readonly more: boolean;
}

export function ImportDialog(
  { table: { name: table, schema }, onClose }: {
    readonly table: TableOverview;
    readonly onClose: () => void;
  },
) {
  /** Columns of the selected CSV file with the field each is imported into; `null` for other files. */
  const [mapping, setMapping] = useState<
    { readonly columns: readonly CsvColumn[]; readonly fields: readonly (string | null)[] } | null
  >(null);
  /** The file that is selected now, while the columns of an earlier one may still be read. */
  const selectedFile = useRef<File | undefined>(undefined);
  const [isMappingEdited, setIsMappingEdited] = useState(false);
  const fields = ["_id", "_creationTime", ...Object.keys(propertiesOf(schema))];
  /** Progress of the check; `null` if none is running. */
  const [checking, setChecking] = useState<string | null>(null);
  const leaving = useRef(new AbortController());
  // Closing the dialog aborts a check, but not an import.
  useEffect(() => () => leaving.current.abort(), []);
  /** Result of checking the selected file and mode; `null` before the check. */
  const [report, setReport] = useState<Report | null>(null);
  const [error, setError] = useState<string | null>(null);
  const ready = report !== null && report.faults.length === 0;
  const submitButton = useRef<HTMLButtonElement>(null);
  const isChecking = checking !== null;
  const wasChecking = useRef(false);
  // The button was disabled during the check, which took its focus.
  useEffect(() => {
    if (wasChecking.current && !isChecking) submitButton.current?.focus();
    wasChecking.current = isChecking;
  }, [isChecking]);

  async function readColumns(file: File | undefined): Promise<void> {
    selectedFile.current = file;
    setMapping(null);
    setIsMappingEdited(false);
    if (file === undefined || !file.name.endsWith(".csv")) return;
    // A file that cannot be read is reported when it is checked.
    const head = await file.slice(0, CSV_HEAD_CHARS).text().catch(() => "");
    // Another file may have been selected in the meantime.
    if (head === "" || selectedFile.current !== file) return;
    const columns = csvColumns(head);
    // Without a readable header, the server reports what is wrong.
    if (columns.length > 0) setMapping({ columns, fields: matchingFields(columns, fields) });
  }

  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const file = form.get("file");
    if (!(file instanceof File)) return;
    const query = new URLSearchParams({
      mode: String(form.get("mode")),
      format: file.name.endsWith(".csv") ? "csv" : "jsonl",
      ...(mapping !== null && { columns: JSON.stringify(mapping.fields) }),
      ...(ready ? { detached: "true" } : { dryRun: "true" }),
    });
    const send = async (signal: AbortSignal | null) => {
      const path = `/api/admin/import/${encodeURIComponent(table)}?${query}`;
      return await (await adminSession.fetch(path, { method: "POST", body: file, signal })).json() as unknown;
    };
    if (ready) {
      // The import continues in the background.
      onClose();
      await runPageTask(
        { view: "data", text: `Importing ${file.name} into ${table}…` },
        async ({ report: reportProgress }) => {
          const { imported } = await sendImport(() => send(null), reportProgress) as {
            readonly imported: number;
          };
          showToast(`${count(imported)} ${imported === 1 ? "document" : "documents"} imported.`);
        },
      );
      return;
    }
    setChecking("Uploading the file");
    setError(null);
    try {
      setReport(await sendImport(() => send(leaving.current.signal), setChecking) as Report);
    } catch (failure) {
      setReport(null);
      // The request also fails if the file was deleted or changed after its selection.
      const isReadable = await file.slice(0, 1).arrayBuffer().then(() => true, () => false);
      if (!isReadable) setError(`Cannot read ${file.name}. Select it again.`);
      else setError(failure instanceof Error ? failure.message : String(failure));
    }
    setChecking(null);
  }

  return (
    <Dialog
      open
      title={`Import into ${table}`}
      text="JSON lines, or CSV with a header row. If any document is invalid, nothing is imported."
      unsaved={isMappingEdited}
      onClose={onClose}
      footer={
        <>
          <CancelButton />
          <Button type="submit" form="import" tone="accent" disabled={isChecking} ref={submitButton}>
            {isChecking ? "Checking…" : ready ? `Import ${rowsText(report.rows)}` : "Check file"}
          </Button>
        </>
      }
    >
      <form
        id="import"
        onSubmit={(event) => void submit(event)}
        onChange={() => setReport(null)}
      >
        {/* The report must be about the file, mode and columns that are shown. */}
        <fieldset className="stack" disabled={isChecking}>
          <TextField
            label="File"
            name="file"
            type="file"
            accept=".jsonl,.csv"
            required
            onChange={(event) => void readColumns(event.target.files?.[0])}
          />
          <SelectField label="If the ID exists" name="mode" defaultValue="insert">
            <option value="insert">fail</option>
            <option value="upsert">replace the document</option>
            <option value="replace">delete all documents in the table first</option>
          </SelectField>
          {mapping !== null && (
            <Mapping
              {...mapping}
              choices={fields}
              required={requiredOf(schema)}
              onChange={(chosen) => {
                setMapping({ ...mapping, fields: chosen });
                setIsMappingEdited(true);
              }}
            />
          )}
        </fieldset>
      </form>
      {checking !== null && <p className="quiet" role="status">{checking}…</p>}
      {ready && (
        <p role="status">
          {report.rows === 1 ? "The row is valid" : `All ${rowsText(report.rows)} are valid`}. Nothing has
          been imported yet.
        </p>
      )}
      {report !== null && report.faults.length > 0 && <Faults report={report} />}
      {error !== null && <p className="field-error" role="alert">{error}</p>}
    </Dialog>
  );
}

/** The field that each column of a CSV file is imported into. */
function Mapping({ columns, fields, choices, required, onChange }: {
  readonly columns: readonly CsvColumn[];
  readonly fields: readonly (string | null)[];
  readonly choices: readonly string[];
  readonly required: readonly string[];
  readonly onChange: (fields: readonly (string | null)[]) => void;
}) {
  const missing = required.filter((field) => !fields.includes(field));
  return (
    <>
      <div className="table-scroll faults" tabIndex={0}>
        <Table head={["Column", "First values", "Field"]}>
          {columns.map(({ name, examples }, at) => (
            <tr key={at}>
              <td className="wrap">{name || <span className="quiet">(no name)</span>}</td>
              <td className="quiet wrap">{examples.join(", ")}</td>
              <td>
                <select
                  className="input fit"
                  aria-label={`Field of column ${name}`}
                  value={fields[at] ?? ""}
                  onChange={({ target: { value } }) =>
                    // A field has one column.
                    onChange(fields.map((field, other) =>
                      other === at ? value || null : field === value ? null : field
                    ))}
                >
                  <option value="">(skip)</option>
                  {choices.map((field) => <option key={field} value={field}>{field}</option>)}
                </select>
              </td>
            </tr>
          ))}
        </Table>
      </div>
      {missing.length > 0 && <p className="field-error" role="status">No column for {missing.join(", ")}.</p>}
    </>
  );
}

const rowsText = (rows: number): string => `${count(rows)} ${rows === 1 ? "row" : "rows"}`;

function Faults({ report: { faults, more } }: { readonly report: Report }) {
  return (
    <div role="alert" className="stack">
      <p className="field-error">
        {more ? "At least " : ""}
        {faults.length === 1 ? "1 invalid row" : `${count(faults.length)} invalid rows`}. Nothing was
        imported.
      </p>
      <div className="table-scroll faults" tabIndex={0}>
        <Table head={[{ number: "Line" }, "Error"]}>
          {faults.map(({ line, message }, position) => (
            <tr key={position}>
              <td className="number">{line ?? "–"}</td>
              <td className="wrap">{message}</td>
            </tr>
          ))}
        </Table>
      </div>
    </div>
  );
}
