/** Copies one table of an earlier state into the running server, by an export and an import. */
import type { ReactNode } from "react";
import { useQuery } from "syncline/react";
import { adminSession } from "../../server/admin_session.ts";
import { api } from "../../server/api.ts";
import { sendImport } from "../../server/import_status.ts";
import { SelectField } from "../../ui/controls.tsx";
import { FormDialog } from "../../ui/dialog.tsx";
import { countOf } from "../../ui/format.tsx";
import { runPageTask } from "../../ui/page_tasks.ts";
import { showToast } from "../../ui/toasts.tsx";
import type { Point } from "./restorable.ts";

/** The state that a table is copied from. */
export type Source =
  /** A prepared restore, which is canceled afterwards. */
  | { readonly stagedAt: string }
  /** The endpoint of a backup. Like a point in time, it is never prepared as a restore: an interrupted copy must not restore everything. */
  | { readonly backup: string }
  | Point;

export function CopyTable(
  { title, text = "", button = "Copy table", table, sourceOf, children, onDone, onClose }: {
    readonly title: string;
    /** Follows the first sentence. Optional. */
    readonly text?: string;
    readonly button?: string;
    /** Default: chosen in the dialog. */
    readonly table?: string;
    /** Returns the state to copy from. */
    readonly sourceOf: (form: FormData) => Source;
    /** Fields that choose the state. Optional. */
    readonly children?: ReactNode;
    /** Called at the end. Optional. */
    readonly onDone?: () => void;
    readonly onClose: () => void;
  },
) {
  async function copy(form: FormData): Promise<void> {
    const source = sourceOf(form);
    onClose();
    await copyTable(source, { table: table ?? String(form.get("table")), mode: String(form.get("mode")) });
    onDone?.();
  }
  return (
    <FormDialog
      title={title}
      text={`Only this table changes, immediately and without a restart.${text}`}
      button={button}
      needs="owner"
      onSubmit={copy}
      onClose={onClose}
    >
      {children}
      {table === undefined && <TableField />}
      <SelectField label="Documents added since then" name="mode" defaultValue="upsert">
        <option value="upsert">keep</option>
        <option value="replace">delete all documents in the table first</option>
      </SelectField>
    </FormDialog>
  );
}

function TableField() {
  const tables = useQuery(api.data.tables)?.filter(({ ofService, orphaned }) => !ofService && !orphaned);
  return (
    <SelectField
      key={tables === undefined ? "loading" : "loaded"}
      label="Table"
      name="table"
      required
      autoFocus
    >
      {tables?.map(({ name }) => <option key={name} value={name}>{name}</option>)}
    </SelectField>
  );
}

async function copyTable(
  source: Source,
  { table, mode }: { readonly table: string; readonly mode: string },
): Promise<void> {
  const query = new URLSearchParams({
    mode,
    format: "jsonl",
    detached: "true",
    // For the audit log.
    source: nameOf(source),
  });
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
    showToast(
      `${countOf(imported, "document")} copied to ${table}.${isStaged ? await canceled(source) : ""}`,
    );
  });
}

function nameOf(source: Source): string {
  if ("stagedAt" in source) return "a prepared restore";
  if ("backup" in source) return `the backup ${decodeURIComponent(source.backup.split("/").at(-1) ?? "")}`;
  return `the state of ${source.toTime}`;
}

async function documentsOf(table: string, source: Source): Promise<Blob> {
  const name = encodeURIComponent(table);
  const response = "stagedAt" in source
    ? await adminSession.fetch(`/api/admin/restore/export/${name}`)
    : "backup" in source
    ? await adminSession.fetch(`${source.backup}/export/${name}`, { method: "POST" })
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
