/** Copies one table of an earlier state into the running server, by an export and an import. */
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

/** The state that a table is copied from. */
type Source =
  /** A prepared restore, which is canceled afterwards. */
  | { readonly stagedAt: string }
  /** A point in time, which is never prepared as a restore: an interrupted copy must not restore everything. */
  | { readonly toTime: string; readonly generation?: string };

export function CopyTable({ of, source, onDone, onClose }: {
  /** The state in words. Default: the prepared restore. */
  readonly of?: string;
  readonly source: Source;
  /** Called at the end. Optional. */
  readonly onDone?: () => void;
  readonly onClose: () => void;
}) {
  const { search } = useRoute();
  const tables = useQuery(api.data.tables)?.filter(({ ofService, orphaned }) => !ofService && !orphaned);
  async function copy(form: FormData): Promise<void> {
    onClose();
    const table = String(form.get("table"));
    const query = new URLSearchParams({ mode: String(form.get("mode")), format: "jsonl", detached: "true" });
    await runPageTask({ view: "backups", text: `Copying ${table}…` }, async ({ report }) => {
      const isStaged = "stagedAt" in source;
      if (!isStaged) report("Rebuilding and verifying the earlier state…");
      const documents = await documentsOf(table, source);
      report(`Copying ${table}…`);
      const { imported } = await sendImport(
        async () =>
          await (await adminSession.fetch(`/api/admin/import/${encodeURIComponent(table)}?${query}`, {
            method: "POST",
            body: documents,
          })).json() as { readonly imported: number },
        report,
      );
      showToast(`${countOf(imported, "document")} copied.${isStaged ? await canceled(source) : ""}`);
    });
    onDone?.();
  }
  return (
    <FormDialog
      title={`Copy one table${of === undefined ? "" : ` ${of}`}`}
      text={`Only this table changes, immediately and without a restart.${
        "stagedAt" in source
          ? " Then the prepared restore is canceled. If copying fails, it stays prepared."
          : ""
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

async function documentsOf(table: string, source: Source): Promise<Blob> {
  const name = encodeURIComponent(table);
  const response = "stagedAt" in source
    ? await adminSession.fetch(`/api/admin/restore/export/${name}`)
    : await adminSession.fetch(`/api/admin/restore/point-in-time/export/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(source),
    });
  return await response.blob();
}

/** Cancels the restore, but not one prepared in the meantime. Returns a sentence. */
async function canceled({ stagedAt }: { readonly stagedAt: string }): Promise<string> {
  const path = `/api/admin/restore?${new URLSearchParams({ stagedAt })}`;
  try {
    const { cancelled } = await (await adminSession.fetch(path, { method: "DELETE" })).json();
    return cancelled
      ? " The prepared restore was canceled."
      : " The prepared restore was already canceled or replaced.";
  } catch {
    // The table is copied all the same.
    return " The prepared restore could not be canceled: cancel it in Backups.";
  }
}
