/** Takes documents from a file into a table; the server checks all of them before it stores the first. */
import { type FormEvent, useState } from "react";
import { adminSession } from "../../server/admin_session.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";

export function ImportDialog({ table, onClose }: { readonly table: string; readonly onClose: () => void }) {
  const [busy, setBusy] = useState(false);
  const [report, setReport] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const file = form.get("file");
    if (!(file instanceof File)) return;
    const format = file.name.endsWith(".csv") ? "csv" : "jsonl";
    const path = `/api/admin/import/${encodeURIComponent(table)}?mode=${
      String(form.get("mode"))
    }&format=${format}`;
    setBusy(true);
    setError(null);
    setReport(null);
    try {
      const answer = await (await adminSession.fetch(path, { method: "POST", body: file })).json();
      setReport(JSON.stringify(answer, null, 2));
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
    }
    setBusy(false);
  }
  return (
    <Dialog
      open
      title={`Import into ${table}`}
      text="JSON lines, or CSV with a header row. Nothing is stored when one document does not fit."
      onClose={onClose}
      foot={
        <Button type="submit" form="import" tone="accent" disabled={busy}>
          {busy ? "Importing…" : "Import"}
        </Button>
      }
    >
      <form id="import" className="stack" onSubmit={(event) => void submit(event)}>
        <TextField label="File" name="file" type="file" accept=".jsonl,.csv" required />
        <SelectField label="Documents whose id is there already" name="mode" defaultValue="insert">
          <option value="insert">are an error</option>
          <option value="upsert">are replaced</option>
          <option value="replace">go, as all others of the table do</option>
        </SelectField>
      </form>
      {report !== null && <pre className="mono" role="status">{report}</pre>}
      {error !== null && <p className="field-error" role="alert">{error}</p>}
    </Dialog>
  );
}
