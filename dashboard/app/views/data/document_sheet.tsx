/** One document as JSON: create, edit, duplicate, delete. Conflicting saves are rejected. */
import { Fragment, lazy, Suspense, useEffect, useState } from "react";
import { useMutation, useQuery } from "syncline/react";
import { FunctionError } from "syncline/client";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { api } from "../../server/api.ts";
import { Button } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { Time } from "../../ui/format.tsx";
import { Empty, Loading } from "../../ui/view.tsx";
import { hrefOfDocument } from "./cell.tsx";
import { exampleOf, propertiesOf, tableOf } from "../../server/json_schema.ts";

const JsonEditor = lazy(async () => ({ default: (await import("../../ui/json_editor.tsx")).JsonEditor }));

type Fields = Readonly<Record<string, unknown>>;

export interface DocumentSheetProps {
  readonly table: TableOverview;
  /** `null` for a new document. */
  readonly documentId: string | null;
  readonly onClose: () => void;
  readonly onOpen: (id: string) => void;
}

export function DocumentSheet({ table, documentId, onClose, onOpen }: DocumentSheetProps) {
  const found = useQuery(api.data.get, documentId === null ? "skip" : { id: documentId });
  const document = found?.document as Fields | undefined;
  /** The version loaded into the editor, used to detect conflicting changes. */
  const [seen, setSeen] = useState<Fields | null>(null);
  const [text, setText] = useState("");
  const [error, setError] = useState<string | null>(null);
  const insert = useMutation(api.data.insert);
  const replace = useMutation(api.data.replace);
  const remove = useMutation(api.data.remove);
  useEffect(() => {
    if (seen !== null) return;
    if (documentId === null) {
      setSeen({});
      setText(JSON.stringify(exampleOf(table.schema) ?? {}, null, 2));
    } else if (document !== undefined) load(document);
  }, [document, documentId, seen]);

  function load(stored: Fields): void {
    setSeen(stored);
    setText(JSON.stringify(ownFields(stored), null, 2));
    setError(null);
  }

  async function save(): Promise<void> {
    setError(null);
    try {
      const own = JSON.parse(text) as Record<string, unknown>;
      if (documentId === null) {
        await insertOne(own, "Saved");
      } else {
        const before = ownFields(seen ?? {});
        await replace({ id: documentId, document: own, seen: before });
        setSeen(own);
        showToast("Saved", {
          action: {
            text: "Undo",
            run: () =>
              void attempt(async () => {
                await replace({ id: documentId, document: before, seen: own });
                load(before);
              }, "Undone"),
          },
        });
      }
    } catch (failure) {
      setError(messageOf(failure));
    }
  }

  async function insertOne(own: Record<string, unknown>, message: string): Promise<void> {
    const { ids: [id] } = await insert({ table: table.name, documents: [own] });
    if (id === undefined) return;
    onOpen(id);
    showToast(message, {
      action: {
        text: "Undo",
        run: () =>
          void attempt(async () => {
            await remove({ ids: [id] });
            onClose();
          }, "Undone"),
      },
    });
  }

  async function removeIt(): Promise<void> {
    if (documentId === null) return;
    const { documents } = await remove({ ids: [documentId] });
    onClose();
    showToast("Deleted", {
      action: {
        text: "Undo",
        run: () => void attempt(() => insert({ table: table.name, documents: documents as never }), "Undone"),
      },
    });
  }

  const changedByOthers = document !== undefined && seen !== null && documentId !== null &&
    JSON.stringify(ownFields(document)) !== JSON.stringify(ownFields(seen));
  return (
    <Dialog
      open
      form="side"
      title={documentId === null ? `New document in ${table.name}` : "Document"}
      onClose={onClose}
      footer={!table.ofService && (
        <>
          {documentId !== null && (
            <>
              <Button tone="bad" onClick={() => void attempt(removeIt)}>Delete</Button>
              <Button
                onClick={() =>
                  void attempt(() => insertOne(JSON.parse(text) as Record<string, unknown>, "Copy created"))}
              >
                Duplicate
              </Button>
            </>
          )}
          <span className="grow" />
          <Button tone="accent" onClick={() => void save()}>Save</Button>
        </>
      )}
    >
      {found === undefined && documentId !== null && <Loading />}
      {found === null && documentId !== null && <Empty title="Document not found" />}
      {documentId !== null && document !== undefined && (
        <dl className="facts">
          <dt>ID</dt>
          <dd className="mono">{documentId}</dd>
          <dt>Created</dt>
          <dd>
            <Time at={Number(document["_creationTime"])} />
          </dd>
          {referencesOf(table, document).map(({ name, id, to }) => (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd className="mono">
                <a href={to}>{id}</a>
              </dd>
            </Fragment>
          ))}
        </dl>
      )}
      {changedByOthers && (
        <p className="banner row" role="status">
          <span className="grow">Someone else changed this document while you were editing.</span>
          <Button onClick={() => load(document)}>Load latest version</Button>
        </p>
      )}
      {(documentId === null || found) && (
        <Suspense fallback={<Loading />}>
          <JsonEditor
            label={`Fields of ${table.name}`}
            value={text}
            schema={table.schema}
            onChange={setText}
          />
        </Suspense>
      )}
      {error !== null && <p className="field-error" role="alert">{error}</p>}
    </Dialog>
  );
}

function referencesOf({ schema }: TableOverview, document: Fields) {
  return Object.entries(propertiesOf(schema)).flatMap(([name, property]) => {
    const [table, id] = [tableOf(property), document[name]];
    return table === null || typeof id !== "string" ? [] : [{ name, id, to: hrefOfDocument(table, id) }];
  });
}

function ownFields({ _id, _creationTime, ...own }: Fields): Fields {
  return own;
}

/** Formats the server's error, listing each invalid field. */
function messageOf(failure: unknown): string {
  if (failure instanceof FunctionError && failure.data !== null) {
    const { issues } = (failure.data ?? {}) as {
      readonly issues?: readonly { readonly path: readonly unknown[]; readonly message: string }[];
    };
    if (issues !== undefined && issues.length > 0) {
      return issues.map(({ path, message }) => `${path.join(".") || "The document"}: ${message}`).join("\n");
    }
  }
  return failure instanceof Error ? failure.message : String(failure);
}
