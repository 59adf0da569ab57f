/** Takes documents from a file into a table: first a dry run with a report by row, then the import. */
import { type FormEvent, useState } from "react";
import { adminSession } from "../../server/admin_session.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { note } from "../../ui/notes.tsx";
import { count } from "../../ui/texts.tsx";

interface Report {
  readonly rows: number;
  readonly faults: readonly { readonly line: number | null; readonly message: string }[];
  readonly more: boolean;
}

export function ImportDialog({ table, onClose }: { readonly table: string; readonly onClose: () => void }) {
  const [busy, setBusy] = useState<"checking" | "importing" | null>(null);
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
      ...(!ready && { dryRun: "true" }),
    });
    setBusy(ready ? "importing" : "checking");
    setError(null);
    try {
      const path = `/api/admin/import/${encodeURIComponent(table)}?${query}`;
      const answer = await (await adminSession.fetch(path, { method: "POST", body: file })).json();
      if (ready) {
        note(`${count((answer as { imported: number }).imported)} documents are imported.`);
        onClose();
        return;
      }
      setReport(answer as Report);
    } catch (failure) {
      setReport(null);
      setError(failure instanceof Error ? failure.message : String(failure));
    }
    setBusy(null);
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
          <Button type="submit" form="import" tone="accent" disabled={busy !== null}>
            {busy === "checking"
              ? "Checking…"
              : busy === "importing"
              ? "Importing…"
              : ready
              ? `Import ${count(report.rows)} rows`
              : "Check the file"}
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
      {ready && <p role="status">All {count(report.rows)} rows fit. Nothing is stored yet.</p>}
      {report !== null && report.faults.length > 0 && <Faults report={report} />}
      {error !== null && <p className="field-error" role="alert">{error}</p>}
    </Dialog>
  );
}

function Faults({ report: { faults, more } }: { readonly report: Report }) {
  return (
    <div role="alert" className="stack">
      <p className="field-error">
        {more ? "At least " : ""}
        {faults.length === 1 ? "one row does" : `${count(faults.length)} rows do`} not fit. Nothing is stored.
      </p>
      <div className="table-scroll faults" tabIndex={0}>
        <table className="table">
          <thead>
            <tr>
              <th className="number">Line</th>
              <th>What is wrong</th>
            </tr>
          </thead>
          <tbody>
            {faults.map(({ line, message }, position) => (
              <tr key={position}>
                <td className="number">{line ?? "–"}</td>
                <td className="wrap">{message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
