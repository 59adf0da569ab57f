/** One table: filter, grid, and actions on the table and on selected documents. */
import { useMemo, useState } from "react";
import { useMutation, useQuery } from "syncline/react";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { adminSession } from "../../server/admin_session.ts";
import { api, seenField, type Where } from "../../server/api.ts";
import { go, replace, useRoute } from "../../shell/route.ts";
import { useCreateDialog } from "../../ui/create_dialog.ts";
import { useRefusal } from "../../ui/access.tsx";
import { Badge, Button, Icon } from "../../ui/controls.tsx";
import { useConfirm } from "../../ui/dialog.tsx";
import { count, countOf, size } from "../../ui/format.tsx";
import { Menu } from "../../ui/menu.tsx";
import { runPageTask, type TaskControl } from "../../ui/page_tasks.ts";
import { saveFile } from "../../ui/save_file.ts";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { Loading } from "../../ui/view.tsx";
import { useColumns } from "./columns.ts";
import { DocumentGrid, type FieldChange } from "./document_grid.tsx";
import { DocumentSheet, type DocumentSheetProps, isReadOnly, NEW } from "./document_sheet.tsx";
import { FilterBar } from "./filter_bar.tsx";
import { BY_TIME, filtersOf, indexParam, isWhole, orderingIndex, whereOf } from "./filters.ts";
import type { GridOrder } from "./grid_head.tsx";
import type { Row } from "./grid_row.tsx";
import { ImportDialog } from "./import_dialog.tsx";
import { SchemaDialog } from "./schema_map.tsx";
import { SetFieldDialog } from "./set_field_dialog.tsx";
import { TableViews } from "./table_views.tsx";

type ExportFormat = "jsonl" | "csv";

/** Maximum size of a blob part, in bytes. */
const PART_BYTES = 4 * 1024 * 1024;

/** Collects the response in blob parts, which browsers may keep on disk, so large tables do not have to fit in memory. */
async function exportDocuments(
  { table, ...where }: Where,
  { format, report, signal }: TaskControl & { readonly format: ExportFormat },
): Promise<Blob> {
  const path = `/api/admin/export/${encodeURIComponent(table)}?format=${format}`;
  // The filter is sent in the body so that its values do not appear in an address.
  const filter = isWhole({ table, ...where }) ? {} : { method: "POST", body: JSON.stringify(where) };
  const response = await adminSession.fetch(path, { signal, ...filter });
  const parts: Blob[] = [];
  let waiting: Uint8Array<ArrayBuffer>[] = [];
  let waitingBytes = 0;
  let bytes = 0;
  try {
    const reader = response.body?.getReader();
    for (;;) {
      const { done, value: piece } = await reader?.read() ?? { done: true };
      if (done || piece === undefined) break;
      waiting.push(piece);
      waitingBytes += piece.length;
      bytes += piece.length;
      if (waitingBytes < PART_BYTES) continue;
      parts.push(new Blob(waiting));
      waiting = [];
      waitingBytes = 0;
      report(`Exporting ${table}: ${size(bytes)} so far`);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Error(
      `Export of ${table} failed: the connection was lost or the export timed out. No file was saved.`,
      { cause: error },
    );
  }
  return new Blob([...parts, ...waiting], { type: response.headers.get("Content-Type") ?? "" });
}

export interface TablePageProps {
  readonly table: TableOverview;
  /** All tables, for documents of others that are opened here. */
  readonly tables: readonly TableOverview[];
}

export function TablePage({ table, tables }: TablePageProps) {
  const { path: [, , documentId], search } = useRoute();
  const where = useMemo(() => whereOf(table, search), [table.name, search.toString()]);
  const [chosen, setChosen] = useState<ReadonlyMap<string, Row>>(new Map());
  const [showsSchema, setShowsSchema] = useState(false);
  const [importing, setImporting] = useCreateDialog(["data", table.name], {
    needs: "editor",
    make: "import",
  });
  const patch = useMutation(api.data.patch);
  const arranged = useColumns(table);
  const refusal = useRefusal("editor");
  const here = Object.fromEntries(search);
  const order = orderOf(table, {
    search,
    where,
    onChange: (changes) => replace(["data", table.name], { ...here, ...changes }),
  });
  const show = (id: string | null) => go(["data", table.name, ...(id === null ? [] : [id])], here);

  /** Sends the value shown, so that the server rejects a conflicting change. */
  async function editField({ _id: id, ...row }: Row, { name, value }: FieldChange): Promise<void> {
    const before = row[name];
    const change = (now: unknown, seen: unknown) =>
      patch({
        id,
        ...(now === undefined ? { unset: [name] } : { set: { [name]: now } }),
        seen: seenField(name, seen),
      });
    await change(value, before);
    showToast(`${name} saved`, {
      action: { text: "Undo", run: () => void attempt(() => change(before, value), "Undone") },
    });
  }

  return (
    <section className="table-page" aria-label={table.name}>
      <div className="toolbar">
        <div className="row">
          <FilterBar
            table={table}
            onChange={(changes) => replace(["data", table.name], { ...here, ...changes })}
          />
        </div>
        <div className="row">
          {arranged !== null && <TableViews table={table} arranged={arranged} search={search} />}
          <TableMenu
            table={table}
            where={where}
            onSchema={() => setShowsSchema(true)}
            onImport={() => setImporting(true)}
          />
          {!isReadOnly(table) && (
            <Button tone="accent" needs="editor" onClick={() => show(NEW)}>
              <Icon name="plus" /> New document
            </Button>
          )}
        </div>
      </div>
      {where.conditions !== undefined && where.conditions.length > 0 && (
        <p className="quiet">
          <Badge tone="warn">scans</Badge> {where.range === undefined
            ? "No index supports this filter, so it scans every document."
            : "An index supports a part of this filter. All documents that it finds are scanned."}
        </p>
      )}
      {arranged === null ? <Loading /> : (
        <DocumentGrid
          key={JSON.stringify(where)}
          table={table}
          where={where}
          order={order}
          arranged={arranged}
          selected={chosen}
          onSelect={setChosen}
          onShown={(rows) => setChosen((before) => refreshed(before, rows))}
          onOpen={show}
          onEdit={isReadOnly(table) || refusal !== undefined
            ? null
            : (row, change) => void attempt(() => editField(row, change))}
        />
      )}
      {chosen.size > 0 && !isReadOnly(table) && (
        <SelectionActions
          table={table}
          chosen={chosen}
          onDone={() => setChosen(new Map())}
        />
      )}
      {documentId !== undefined && (
        <OpenDocument
          key={documentId}
          table={table}
          tables={tables}
          documentId={documentId === NEW ? null : documentId}
          onClose={() => show(null)}
          onOpen={show}
        />
      )}
      {showsSchema && <SchemaDialog table={table} onClose={() => setShowsSchema(false)} />}
      {importing && !isReadOnly(table) && (
        <ImportDialog
          table={table}
          onClose={() => setImporting(false)}
        />
      )}
    </section>
  );
}

/** A document of this table, or of another one that a document refers to. */
function OpenDocument({ table, tables, documentId, ...sheet }: DocumentSheetProps & TablePageProps) {
  const found = useQuery(api.data.get, documentId === null ? "skip" : { id: documentId });
  const own = tables.find(({ name }) => name === found?.table) ?? table;
  return <DocumentSheet {...sheet} table={own} documentId={documentId} />;
}

function orderOf(table: TableOverview, { search, where, onChange }: {
  readonly search: URLSearchParams;
  readonly where: Where;
  readonly onChange: (changes: Readonly<Record<string, string>>) => void;
}): GridOrder {
  const filters = filtersOf(search);
  const isSortable = (field: string) =>
    where.search === undefined && orderingIndex(table, filters, field) !== null;
  const index = where.index ?? BY_TIME;
  const indexed = table.indexes.find(({ name }) => name === index)?.fields ?? [];
  const fixed = where.range?.eq as readonly unknown[] | undefined;
  const field = where.search === undefined ? indexed[fixed?.length ?? 0] ?? "_creationTime" : null;
  const descending = where.order !== "asc";
  return {
    field,
    descending,
    isSortable,
    onSort(wanted) {
      if (wanted === field) return onChange({ order: descending ? "asc" : "" });
      const ordering = orderingIndex(table, filters, wanted) ?? BY_TIME;
      onChange({
        index: indexParam(table, search, ordering),
        order: ordering === BY_TIME ? "" : "asc",
      });
    },
  };
}

/** Updates selected rows to their current values. Returns the same map if none changed. */
function refreshed(chosen: ReadonlyMap<string, Row>, rows: readonly Row[]): ReadonlyMap<string, Row> {
  const other = rows.filter((row) => chosen.has(row._id) && chosen.get(row._id) !== row);
  return other.length === 0 ? chosen : new Map([...chosen, ...other.map((row) => [row._id, row] as const)]);
}

function SelectionActions({ table, chosen, onDone }: {
  readonly table: TableOverview;
  readonly chosen: ReadonlyMap<string, Row>;
  readonly onDone: () => void;
}) {
  const remove = useMutation(api.data.remove);
  const insert = useMutation(api.data.insert);
  const { ask, dialog } = useConfirm();
  const [setting, setSetting] = useState(false);
  const many = countOf(chosen.size, "document");
  async function removeChosen(): Promise<void> {
    const { documents } = await remove({ ids: [...chosen.keys()] });
    onDone();
    showToast(`${many} deleted.`, {
      action: {
        text: "Undo",
        run: () =>
          void attempt(
            () => insert({ table: table.name, documents: documents as never }),
            "Undone",
          ),
      },
    });
  }
  return (
    <div className="row chosen">
      <span className="grow">{many} selected</span>
      <Button tone="plain" onClick={onDone}>Clear selection</Button>
      <Button needs="editor" onClick={() => setSetting(true)}>Set field on {count(chosen.size)}</Button>
      <Button
        tone="bad"
        needs="editor"
        onClick={() =>
          ask({
            title: `Delete ${many}?`,
            text: "You can undo this for a few seconds.",
            button: "Delete",
            run: removeChosen,
          })}
      >
        Delete {count(chosen.size)}
      </Button>
      {setting && (
        <SetFieldDialog
          table={table}
          rows={[...chosen.values()]}
          onClose={() => setSetting(false)}
        />
      )}
      {dialog}
    </div>
  );
}

function TableMenu({ table, where, onSchema, onImport }: {
  readonly table: TableOverview;
  readonly where: Where;
  readonly onSchema: () => void;
  readonly onImport: () => void;
}) {
  const { ask, dialog } = useConfirm();
  const exported = (format: ExportFormat) => void exportTable(table, { where, format });
  return (
    <>
      <Menu
        label="More about this table"
        items={[
          { text: "Schema and indexes", run: onSchema },
          {
            text: `Export ${isWhole(where) ? "" : "filtered rows "}as JSON lines`,
            run: () => exported("jsonl"),
          },
          { text: `Export ${isWhole(where) ? "" : "filtered rows "}as CSV`, run: () => exported("csv") },
          ...(isReadOnly(table) ? [] : [
            { text: "Import…", needs: "editor" as const, run: onImport },
            {
              text: "Restore an earlier state…",
              needs: "owner" as const,
              run: () => go(["backups"], { table: table.name }),
            },
            {
              text: "Delete all shown…",
              tone: "bad" as const,
              needs: "editor" as const,
              run: () =>
                ask({
                  title: isWhole(where)
                    ? `Delete all documents of ${table.name}?`
                    : "Delete all documents that match the filter?",
                  text: "The server deletes them in the background. This cannot be undone.",
                  button: "Delete all",
                  done: "Deletion started.",
                  run: () => deleteWhere(where),
                }),
            },
          ]),
        ]}
      />
      {dialog}
    </>
  );
}

/** Runs over HTTP, so that the deletion continues when this page is closed. */
async function deleteWhere({ order: _, ...where }: Where): Promise<void> {
  const response = await adminSession.fetch("/api/action", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ path: "_admin/data:deleteWhere", args: where }),
  });
  await response.body?.cancel();
}

async function exportTable(
  { name }: TableOverview,
  { where, format }: { readonly where: Where; readonly format: ExportFormat },
): Promise<void> {
  await runPageTask({ view: "data", text: `Exporting ${name}…`, cancelable: true }, async (steps) => {
    saveFile(`${name}.${format}`, await exportDocuments(where, { ...steps, format }));
  });
}
