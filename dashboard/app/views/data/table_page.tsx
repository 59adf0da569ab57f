/** One table: how its documents are ordered and filtered, the grid, and what can be done with those chosen. */
import { useMemo, useState } from "react";
import { useMutation } from "syncline/react";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { adminSession } from "../../server/admin_session.ts";
import { api, type Where } from "../../server/api.ts";
import { go, replace, useRoute } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { useConfirm } from "../../ui/confirm.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Menu } from "../../ui/menu.tsx";
import { attempt, note } from "../../ui/notes.tsx";
import { count } from "../../ui/texts.tsx";
import { DocumentSheet } from "./document_sheet.tsx";
import { DocumentGrid, type FieldChange } from "./document_grid.tsx";
import { FilterBar } from "./filter_bar.tsx";
import { ImportDialog } from "./import_dialog.tsx";
import { SchemaDialog } from "./schema_dialog.tsx";
import { whereOf } from "./where.ts";

export type Row = Readonly<Record<string, unknown>> & {
  readonly _id: string;
  readonly _creationTime: number;
};

/** A new document has this in the place of an id. */
const NEW = "new";

export function TablePage({ table }: { readonly table: TableOverview }) {
  const { path: [, , documentId], search } = useRoute();
  const where = useMemo(() => whereOf(table, search), [table.name, search.toString()]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<"schema" | "import" | null>(null);
  const patch = useMutation(api.data.patch);
  const here = Object.fromEntries(search);
  const show = (id: string | null) => go(["data", table.name, ...(id === null ? [] : [id])], here);

  /** What the grid showed goes along: when another has changed it since, the person is told. */
  async function editField({ _id: id, ...row }: Row, { name, value }: FieldChange): Promise<void> {
    const before = row[name];
    const change = (now: unknown, seen: unknown) =>
      patch({
        id,
        ...(now === undefined ? { unset: [name] } : { set: { [name]: now } }),
        ...(seen !== undefined && { seen: { [name]: seen } }),
      });
    await change(value, before);
    note(`${name} is saved.`, {
      action: { text: "Undo", run: () => void attempt(() => change(before, value), "It is as it was.") },
    });
  }

  return (
    <section className="table-page" aria-label={table.name}>
      <div className="row">
        <FilterBar
          table={table}
          onChange={(changes) => replace(["data", table.name], { ...here, ...changes })}
        />
        <span className="grow" />
        {chosen.size > 0 && <ChosenActions chosen={chosen} onDone={() => setChosen(new Set())} />}
        <TableMenu table={table} where={where} onOpen={setOpen} />
        {!table.ofService && (
          <Button tone="accent" onClick={() => show(NEW)}>
            <Icon name="plus" /> New document
          </Button>
        )}
      </div>
      {where.conditions !== undefined && where.conditions.length > 0 && (
        <p className="quiet">
          <Badge tone="warn">scans</Badge> No index serves this filter: every document is looked at.
        </p>
      )}
      <DocumentGrid
        key={JSON.stringify(where)}
        table={table}
        where={where}
        chosen={chosen}
        onChoose={setChosen}
        onOpen={show}
        onEdit={table.ofService ? null : (row, change) => void attempt(() => editField(row, change))}
      />
      {documentId !== undefined && (
        <DocumentSheet
          key={documentId}
          table={table}
          documentId={documentId === NEW ? null : documentId}
          onClose={() => show(null)}
          onOpen={show}
        />
      )}
      {open === "schema" && <SchemaDialog table={table} onClose={() => setOpen(null)} />}
      {open === "import" && <ImportDialog table={table.name} onClose={() => setOpen(null)} />}
    </section>
  );
}

function ChosenActions(
  { chosen, onDone }: { readonly chosen: ReadonlySet<string>; readonly onDone: () => void },
) {
  const remove = useMutation(api.data.remove);
  const insert = useMutation(api.data.insert);
  const { ask, dialog } = useConfirm();
  const many = `${count(chosen.size)} ${chosen.size === 1 ? "document" : "documents"}`;
  async function removeChosen(): Promise<void> {
    const { documents } = await remove({ ids: [...chosen] });
    onDone();
    const table = (location.hash.split("/")[2] ?? "").split("?")[0] ?? "";
    note(`${many} deleted.`, {
      action: {
        text: "Undo",
        run: () =>
          void attempt(
            () => insert({ table: decodeURIComponent(table), documents: documents as never }),
            "They are back.",
          ),
      },
    });
  }
  return (
    <>
      <Button
        tone="bad"
        onClick={() =>
          ask({
            title: `Delete ${many}?`,
            text: "You can take it back for a moment.",
            button: "Delete",
            done: "",
            run: removeChosen,
          })}
      >
        Delete {count(chosen.size)}
      </Button>
      {dialog}
    </>
  );
}

function TableMenu({ table, where, onOpen }: {
  readonly table: TableOverview;
  readonly where: Where;
  readonly onOpen: (what: "schema" | "import") => void;
}) {
  const { ask, dialog } = useConfirm();
  return (
    <>
      <Menu
        label="More about this table"
        items={[
          { text: "Schema and indexes", run: () => onOpen("schema") },
          { text: "Export as JSON lines", run: () => void attempt(() => exportTable(table.name, "jsonl")) },
          { text: "Export as CSV", run: () => void attempt(() => exportTable(table.name, "csv")) },
          ...(table.ofService ? [] : [
            { text: "Import…", run: () => onOpen("import") },
            {
              text: "Delete all that is shown…",
              tone: "bad" as const,
              run: () =>
                ask({
                  title: "Delete everything that the filter shows?",
                  text: "It goes step by step and cannot be taken back.",
                  button: "Delete all",
                  done: "The deletion has begun.",
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

/** Runs over HTTP, so that it goes on when this page is left. */
async function deleteWhere({ order: _, ...where }: Where): Promise<void> {
  const response = await adminSession.fetch("/api/action", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ path: "_admin/data:deleteWhere", args: where }),
  });
  await response.body?.cancel();
}

async function exportTable(table: string, format: "jsonl" | "csv"): Promise<void> {
  const response = await adminSession.fetch(
    `/api/admin/export/${encodeURIComponent(table)}?format=${format}`,
  );
  const url = URL.createObjectURL(await response.blob());
  Object.assign(document.createElement("a"), { href: url, download: `${table}.${format}` }).click();
  URL.revokeObjectURL(url);
}
