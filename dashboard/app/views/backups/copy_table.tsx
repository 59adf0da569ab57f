/** Copies one table of an earlier state into the running server, through a prepared restore, an export and an import. */
import { useQuery } from "syncline/react";
import { adminSession } from "../../server/admin_session.ts";
import { api } from "../../server/api.ts";
import { sendImport } from "../../server/import_status.ts";
import { useRoute } from "../../shell/route.ts";
import { SelectField } from "../../ui/controls.tsx";
import { FormDialog } from "../../ui/dialog.tsx";
import { countOf } from "../../ui/format.tsx";
import { runPageTask } from "../../ui/page_tasks.ts";
import { showToast } from "../../ui/toasts.tsx";

export function CopyTable({ of, prepare, onDone, onClose }: {
  /** The state in words. Default: the prepared restore. */
  readonly of?: string;
  /** Prepares the restore. Omit if it is prepared. */
  readonly prepare?: () => Promise<void>;
  /** Called when the restore has been canceled. */
  readonly onDone: () => void;
  readonly onClose: () => void;
}) {
  const { search } = useRoute();
  const tables = useQuery(api.data.tables)?.filter(({ ofService, orphaned }) => !ofService && !orphaned);
  async function copy(form: FormData): Promise<void> {
    onClose();
    const table = String(form.get("table"));
    const query = new URLSearchParams({ mode: String(form.get("mode")), format: "jsonl", detached: "true" });
    await runPageTask({ view: "backups", text: `Copying ${table}…` }, async ({ report }) => {
      if (prepare !== undefined) {
        report("Rebuilding and verifying the earlier state…");
        await prepare();
        report(`Copying ${table}…`);
      }
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
      showToast(
        `${countOf(imported, "document")} copied.${
          prepare === undefined ? " The prepared restore was canceled." : ""
        }`,
      );
    });
    onDone();
  }
  return (
    <FormDialog
      title={`Copy one table${of === undefined ? "" : ` ${of}`}`}
      text={`Only this table changes, immediately and without a restart.${
        prepare === undefined ? " Then the prepared restore is canceled." : ""
      }`}
      button="Copy table"
      onSubmit={copy}
      onClose={onClose}
    >
      <SelectField
        key={tables === undefined ? "loading" : "loaded"}
        label="Table"
        name="table"
        required
        autoFocus
        defaultValue={search.get("table") ?? undefined}
      >
        {tables?.map(({ name }) => <option key={name} value={name}>{name}</option>)}
      </SelectField>
      <SelectField label="Documents added since then" name="mode" defaultValue="upsert">
        <option value="upsert">keep</option>
        <option value="replace">delete all documents in the table first</option>
      </SelectField>
    </FormDialog>
  );
}
