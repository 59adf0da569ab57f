/** One document as JSON: made, changed, doubled, deleted. Who changes what another has changed meanwhile is told. */
import { Fragment, lazy, Suspense, useEffect, useState } from "react";
import { useMutation, useQuery } from "syncline/react";
import { FunctionError } from "syncline/client";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { api } from "../../server/api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { attempt, note } from "../../ui/notes.tsx";
import { Time } from "../../ui/texts.tsx";
import { Empty, Loading } from "../../ui/view.tsx";
import { hrefOfDocument } from "./cell.tsx";
import { exampleOf, propertiesOf, tableOf } from "../../server/json_schema.ts";

const JsonEditor = lazy(async () => ({ default: (await import("../../ui/json_editor.tsx")).JsonEditor }));

type Fields = Readonly<Record<string, unknown>>;

export interface DocumentSheetProps {
  readonly table: TableOverview;
  /** `null` for a new one. */
  readonly documentId: string | null;
  readonly onClose: () => void;
  readonly onOpen: (id: string) => void;
}

export function DocumentSheet({ table, documentId, onClose, onOpen }: DocumentSheetProps) {
  const found = useQuery(api.data.get, documentId === null ? "skip" : { id: documentId });
  const document = found?.document as Fields | undefined;
  /** What the editor was filled with, which changes of others are compared with. */
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
        await insertOne(own, "The document is stored.");
      } else {
        const before = ownFields(seen ?? {});
        await replace({ id: documentId, document: own, seen: before });
        setSeen(own);
        note("The document is saved.", {
          action: {
            text: "Undo",
            run: () =>
              void attempt(async () => {
                await replace({ id: documentId, document: before, seen: own });
                load(before);
              }, "It is as it was."),
          },
        });
      }
    } catch (failure) {
      setError(messageOf(failure));
    }
  }

  async function insertOne(own: Record<string, unknown>, told: string): Promise<void> {
    const { ids: [id] } = await insert({ table: table.name, documents: [own] });
    if (id === undefined) return;
    onOpen(id);
    note(told, {
      action: {
        text: "Undo",
        run: () =>
          void attempt(async () => {
            await remove({ ids: [id] });
            onClose();
          }, "It is gone again."),
      },
    });
  }

  async function removeIt(): Promise<void> {
    if (documentId === null) return;
    const { documents } = await remove({ ids: [documentId] });
    onClose();
    note("The document is deleted.", {
      action: {
        text: "Undo",
        run: () =>
          void attempt(() => insert({ table: table.name, documents: documents as never }), "It is back."),
      },
    });
  }

  const changedByOthers = document !== undefined && seen !== null && documentId !== null &&
    JSON.stringify(ownFields(document)) !== JSON.stringify(ownFields(seen));
  return (
    <Dialog
      open
      form="side"
      title={documentId === null ? `New document of ${table.name}` : "Document"}
      onClose={onClose}
      foot={!table.ofService && (
        <>
          {documentId !== null && (
            <>
              <Button tone="bad" onClick={() => void attempt(removeIt)}>Delete</Button>
              <Button
                onClick={() =>
                  void attempt(() =>
                    insertOne(JSON.parse(text) as Record<string, unknown>, "This is the copy.")
                  )}
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
      {found === null && documentId !== null && <Empty title="There is no such document any more" />}
      {documentId !== null && document !== undefined && (
        <dl className="facts">
          <dt>Id</dt>
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
          <span className="grow">Somebody has changed this document.</span>
          <Button onClick={() => load(document)}>Show it as it is now</Button>
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

/** Fields at the top that name other documents. */
function referencesOf({ schema }: TableOverview, document: Fields) {
  return Object.entries(propertiesOf(schema)).flatMap(([name, property]) => {
    const [table, id] = [tableOf(property), document[name]];
    return table === null || typeof id !== "string" ? [] : [{ name, id, to: hrefOfDocument(table, id) }];
  });
}

function ownFields({ _id, _creationTime, ...own }: Fields): Fields {
  return own;
}

/** What the server says of a document that does not fit names each field. */
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
