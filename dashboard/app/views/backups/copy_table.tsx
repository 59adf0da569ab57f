/** Copies one table of a prepared restore into the running server, through an export and an import. */
import { useQuery } from "syncline/react";
import { adminSession } from "../../server/admin_session.ts";
import { api } from "../../server/api.ts";
import { sendImport } from "../../server/import_status.ts";
import { SelectField } from "../../ui/controls.tsx";
import { FormDialog } from "../../ui/dialog.tsx";
import { countOf } from "../../ui/format.tsx";
import { runPageTask } from "../../ui/page_tasks.ts";
import { showToast } from "../../ui/toasts.tsx";

export function CopyTable({ onDone, onClose }: {
  /** Called when the restore has been canceled. */
  readonly onDone: () => void;
  readonly onClose: () => void;
}) {
  const tables = useQuery(api.data.tables)?.filter(({ ofService, orphaned }) => !ofService && !orphaned);
  async function copy(form: FormData): Promise<void> {
    onClose();
    const table = String(form.get("table"));
    const query = new URLSearchParams({ mode: String(form.get("mode")), format: "jsonl", detached: "true" });
    await runPageTask({ view: "backups", text: `Copying ${table}…` }, async ({ report }) => {
      const documents =
        await (await adminSession.fetch(`/api/admin/restore/export/${encodeURIComponent(table)}`)).blob();
      const { imported } = await sendImport(
        async () =>
          await (await adminSession.fetch(`/api/admin/import/${encodeURIComponent(table)}?${query}`, {
            method: "POST",
            body: documents,
          })).json() as { readonly imported: number },
        report,
      );
      await adminSession.fetch("/api/admin/restore", { method: "DELETE" });
      showToast(`${countOf(imported, "document")} copied. The prepared restore was canceled.`);
    });
    onDone();
  }
  return (
    <FormDialog
      title="Copy one table"
      text="Only this table changes, immediately and without a restart. Then the prepared restore is canceled."
      button="Copy table"
      onSubmit={copy}
      onClose={onClose}
    >
      <SelectField label="Table" name="table" required autoFocus>
        {tables?.map(({ name }) => <option key={name} value={name}>{name}</option>)}
      </SelectField>
      <SelectField label="Documents added since then" name="mode" defaultValue="upsert">
        <option value="upsert">keep</option>
        <option value="replace">delete all documents in the table first</option>
      </SelectField>
    </FormDialog>
  );
}
