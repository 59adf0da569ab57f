/** Takes documents from a file into a table: first a dry run with a report by row, then the import. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import { adminSession } from "../../server/admin_session.ts";
import { sendImport } from "../../server/import_status.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { longWork } from "../../ui/long_work.ts";
import { note } from "../../ui/notes.tsx";
import { Table } from "../../ui/table.tsx";
import { count } from "../../ui/texts.tsx";

interface Report {
  readonly rows: number;
  readonly faults: readonly { readonly line: number | null; readonly message: string }[];
  readonly more: boolean;
}

export function ImportDialog({ table, onClose }: { readonly table: string; readonly onClose: () => void }) {
  /** How far the check is; `null` while none runs. */
  const [checking, setChecking] = useState<string | null>(null);
  const leaving = useRef(new AbortController());
  // Nobody waits for a check any more when the dialog is left; an import goes on.
  useEffect(() => () => leaving.current.abort(), []);
  /** Of the file and mode that are chosen now; `null` before they were checked. */
  const [report, setReport] = useState<Report | null>(null);
  const [error, setError] = useState<string | null>(null);
  const ready = report !== null && report.faults.length === 0;

  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const file = form.get("file");
    if (!(file instanceof File)) return;
    const query = new URLSearchParams({
      mode: String(form.get("mode")),
      format: file.name.endsWith(".csv") ? "csv" : "jsonl",
      ...(ready ? { detached: "true" } : { dryRun: "true" }),
    });
    const send = async (signal: AbortSignal | null) => {
      const path = `/api/admin/import/${encodeURIComponent(table)}?${query}`;
      return await (await adminSession.fetch(path, { method: "POST", body: file, signal })).json() as unknown;
    };
    if (ready) {
      // It goes on while the person is elsewhere.
      onClose();
      await longWork({ view: "data", text: `${file.name} is imported into ${table}…` }, async ({ tell }) => {
        const { imported } = await sendImport(() => send(null), tell) as { readonly imported: number };
        note(`${count(imported)} ${imported === 1 ? "document is" : "documents are"} imported.`);
      });
      return;
    }
    setChecking("The file is sent");
    setError(null);
    try {
      setReport(await sendImport(() => send(leaving.current.signal), setChecking) as Report);
    } catch (failure) {
      setReport(null);
      setError(failure instanceof Error ? failure.message : String(failure));
    }
    setChecking(null);
  }

  return (
    <Dialog
      open
      title={`Import into ${table}`}
      text="JSON lines, or CSV with a header row. Nothing is stored when one document does not fit."
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form="import" tone="accent" disabled={checking !== null}>
            {checking !== null ? "Checking…" : ready ? `Import ${rowsText(report.rows)}` : "Check the file"}
          </Button>
        </>
      }
    >
      <form
        id="import"
        className="stack"
        onSubmit={(event) => void submit(event)}
        onChange={() => setReport(null)}
      >
        <TextField label="File" name="file" type="file" accept=".jsonl,.csv" required />
        <SelectField label="Documents whose id is there already" name="mode" defaultValue="insert">
          <option value="insert">are an error</option>
          <option value="upsert">are replaced</option>
          <option value="replace">go, as all others of the table do</option>
        </SelectField>
      </form>
      {checking !== null && <p className="quiet" role="status">{checking}…</p>}
      {ready && (
        <p role="status">
          {report.rows === 1 ? "The one row fits" : `All ${rowsText(report.rows)} fit`}. Nothing is stored
          yet.
        </p>
      )}
      {report !== null && report.faults.length > 0 && <Faults report={report} />}
      {error !== null && <p className="field-error" role="alert">{error}</p>}
    </Dialog>
  );
}

const rowsText = (rows: number): string => `${count(rows)} ${rows === 1 ? "row" : "rows"}`;

function Faults({ report: { faults, more } }: { readonly report: Report }) {
  return (
    <div role="alert" className="stack">
      <p className="field-error">
        {more ? "At least " : ""}
        {faults.length === 1 ? "one row does" : `${count(faults.length)} rows do`} not fit. Nothing is stored.
      </p>
      <div className="table-scroll faults" tabIndex={0}>
        <Table head={[{ number: "Line" }, "What is wrong"]}>
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
