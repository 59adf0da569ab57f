/** One document as JSON: create, edit, duplicate, delete. Conflicting saves are rejected. */
import { Fragment, lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { useMutation, useQuery } from "syncline/react";
import { FunctionError } from "syncline/client";
import { deepEqual } from "../../../../mod/protocol/deep_equal.ts";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { api } from "../../server/api.ts";
import { parseObject } from "../../server/json_text.ts";
import { useRefusal } from "../../ui/access.tsx";
import { Button, EditableFields, ReadOnlyNote } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { currentRoute } from "../../shell/route.ts";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { scrollToShown } from "../../ui/focus.ts";
import { Time } from "../../ui/format.tsx";
import { type Fields, fieldsOf, FormTabs, SchemaForm } from "../../ui/schema_form.tsx";
import { useSaveKey } from "../../ui/save_key.ts";
import { Empty, Loading } from "../../ui/view.tsx";
import { Reference } from "./cell.tsx";
import { useLabels } from "./labels.ts";
import { initialValueOf, propertiesOf, tableOf } from "../../server/json_schema.ts";

const JsonEditor = lazy(async () => ({ default: (await import("../../ui/json_editor.tsx")).JsonEditor }));

const DocumentHistory = lazy(async () => ({
  default: (await import("./document_history.tsx")).DocumentHistory,
}));

/** The editor that this browser used last, in local storage. */
const EDITOR = "syncline.documentEditor";

/** Placeholder for the ID of a new document in the address. */
export const NEW = "new";

export interface DocumentSheetProps {
  readonly table: TableOverview;
  /** `null` for a new document. */
  readonly documentId: string | null;
  readonly onClose: () => void;
  readonly onOpen: (id: string) => void;
}

/** Whether the documents of a table can only be read: the service's, and those that the schema lacks. */
export function isReadOnly({ ofService, orphaned }: TableOverview): boolean {
  return ofService || orphaned;
}

export function DocumentSheet({ table, documentId, onClose, onOpen }: DocumentSheetProps) {
  const found = useQuery(api.data.get, documentId === null ? "skip" : { id: documentId });
  const document = found?.document as Fields | undefined;
  /** The version loaded into the editor, used to detect conflicting changes. */
  const [seen, setSeen] = useState<Fields | null>(null);
  const [text, setText] = useState("");
  const latestText = useRef(text);
  latestText.current = text;
  /** The text without edits. */
  const [stored, setStored] = useState("");
  const [busy, setBusy] = useState(false);
  const [showsHistory, setShowsHistory] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const insert = useMutation(api.data.insert);
  const replace = useMutation(api.data.replace);
  const remove = useMutation(api.data.remove);
  useEffect(() => {
    if (seen !== null) return;
    if (documentId === null) {
      setSeen({});
      show(JSON.stringify(initialValueOf(table.schema) ?? {}, null, 2));
    } else if (document !== undefined) load(document);
  }, [document, documentId, seen]);

  function show(unedited: string): void {
    setText(unedited);
    setStored(unedited);
  }

  function load(latest: Fields): void {
    setSeen(latest);
    show(JSON.stringify(ownFields(latest), null, 2));
    setError(null);
  }

  const refusal = useRefusal("editor");
  const readOnly = isReadOnly(table) || refusal !== undefined;
  const hasForm = !isReadOnly(table) && Object.keys(propertiesOf(table.schema)).length > 0;
  const [form, setForm] = useState(() => localStorage.getItem(EDITOR) === "form");
  const fields = useMemo(() => hasForm ? fieldsOf(text) : null, [hasForm, text]);
  function chooseForm(chosen: boolean): void {
    localStorage.setItem(EDITOR, chosen ? "form" : "json");
    setForm(chosen);
  }

  const dirty = seen !== null && text !== stored;
  const changedByOthers = document !== undefined && seen !== null && documentId !== null &&
    !deepEqual(ownFields(document), ownFields(seen));
  useEffect(() => {
    if (changedByOthers && !dirty && !busy) load(document);
  }, [changedByOthers, document, dirty, busy]);

  async function save(): Promise<void> {
    setError(null);
    setBusy(true);
    try {
      const document = parseObject(text);
      if (documentId === null) {
        await insertOne(document, { message: "Saved", undone: onClose });
      } else {
        const own = ownFields(document);
        await replaceWith(own, { id: documentId, before: ownFields(seen ?? {}), text, message: "Saved" });
        setSeen(own);
        setStored(text);
      }
    } catch (failure) {
      setError(messageOf(failure));
    }
    setBusy(false);
  }

  /** @param text The editor's text of the new version. */
  async function replaceWith(own: Fields, { id, before, text, message, restored }: {
    readonly id: string;
    readonly before: Fields;
    readonly text: string;
    readonly message: string;
    /** Time of an earlier state that is stored again. */
    readonly restored?: number;
  }): Promise<void> {
    await replace({ id, document: own, seen: before, ...(restored !== undefined && { restored }) });
    showToast(message, {
      action: {
        text: "Undo",
        run: () =>
          void attempt(async () => {
            await replace({ id, document: before, seen: own });
            if (latestText.current === text) load(before);
            else setSeen(before);
          }, "Undone"),
      },
    });
  }

  /** Stores an earlier state of the document, or inserts it again if it was deleted. */
  async function restore(id: string, earlier: Fields, at: number): Promise<void> {
    const own = ownFields(earlier);
    // After an undo the sheet shows again that the document does not exist.
    if (document === undefined) await insertOne(earlier, { message: "Restored", restored: at });
    else {
      await replaceWith(own, {
        id,
        before: ownFields(document),
        text: JSON.stringify(own, null, 2),
        message: "Restored",
        restored: at,
      });
    }
    setShowsHistory(false);
    // Edits made in the meantime are kept. Saving them is rejected as a conflict.
    if (latestText.current === text) load(own);
  }
  const savable = !readOnly && !busy && (dirty || documentId === null);
  useSaveKey(savable ? () => void save() : null);

  async function insertOne(document: Fields, { message, undone, restored }: {
    readonly message: string;
    /** Time of an earlier state that is stored again. */
    readonly restored?: number;
    /** Called after an undo if the removed document is open. Optional. */
    readonly undone?: () => void;
  }): Promise<void> {
    const { ids: [id] } = await insert({
      table: table.name,
      documents: [document],
      ...(restored !== undefined && { restored }),
    });
    if (id === undefined) return;
    onOpen(id);
    showToast(message, {
      action: {
        text: "Undo",
        run: () =>
          void attempt(async () => {
            await remove({ ids: [id], seen: { [id]: document } });
            if (currentRoute().path[2] === id) undone?.();
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

  const references = document === undefined ? [] : referencesOf(table, document);
  const labels = useLabels(references.map(({ id }) => id));
  return (
    <Dialog
      open
      form="side"
      title={documentId === null ? `New document in ${table.name}` : `Document in ${table.name}`}
      focusAfter=".table-page [role=grid]"
      unsaved={dirty}
      onClose={onClose}
      footer={!isReadOnly(table) && (documentId === null || found) && (
        <>
          {documentId !== null && (
            <>
              <Button onClick={() => setShowsHistory(true)}>History</Button>
              <Button tone="bad" needs="editor" onClick={() => void attempt(removeIt)}>Delete</Button>
              <Button
                needs="editor"
                onClick={() =>
                  void attempt(() =>
                    insertOne(parseObject(text), {
                      message: "Copy created",
                      undone: () => onOpen(documentId),
                    })
                  )}
              >
                Duplicate
              </Button>
            </>
          )}
          <span className="grow" />
          <Button
            tone="accent"
            needs="editor"
            title="Ctrl+S"
            busy={busy}
            disabled={!savable}
            onClick={() => void save()}
          >
            Save
          </Button>
        </>
      )}
    >
      {found === undefined && documentId !== null && <Loading />}
      {found === null && documentId !== null && (
        <Empty title="Document not found">
          <p>
            Its history lists its changes, entries of the audit log about it, and a backup from before them.
          </p>
          <Button onClick={() => setShowsHistory(true)}>History</Button>
        </Empty>
      )}
      {documentId !== null && document !== undefined && (
        <dl className="facts">
          <dt>ID</dt>
          <dd className="mono">{documentId}</dd>
          <dt>Created</dt>
          <dd>
            <Time at={Number(document["_creationTime"])} />
          </dd>
          {references.map(({ name, id, to }) => (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd>
                <Reference table={to} id={id} labels={labels} onOpen={onOpen} />
              </dd>
            </Fragment>
          ))}
        </dl>
      )}
      {changedByOthers && dirty && !busy && (
        <p className="banner row" role="status">
          <span className="grow">Someone else changed this document while you were editing.</span>
          <Button onClick={() => load(document)}>Discard changes and load latest version</Button>
        </p>
      )}
      {!isReadOnly(table) && <ReadOnlyNote needs="editor" />}
      {(documentId === null || found) && hasForm && (
        <FormTabs label="Document editor" form={form} fields={fields} onForm={chooseForm} />
      )}
      {(documentId === null || found) && (hasForm && form && fields !== null
        ? (
          <EditableFields needs="editor">
            <SchemaForm
              schema={table.schema}
              value={fields}
              onChange={(changed) => setText(JSON.stringify(changed, null, 2))}
            />
          </EditableFields>
        )
        : (
          <Suspense fallback={<Loading />}>
            <JsonEditor
              label={`Fields of ${table.name}`}
              value={text}
              schema={table.schema}
              readOnly={readOnly}
              onChange={setText}
            />
          </Suspense>
        ))}
      {error !== null && <p ref={scrollToShown} className="field-error" role="alert">{error}</p>}
      {showsHistory && documentId !== null && (
        <Suspense>
          <DocumentHistory
            table={table.name}
            id={documentId}
            onRestore={readOnly
              ? null
              : (earlier, at) => void attempt(() => restore(documentId, earlier, at))}
            cannotRestore={dirty ? "Save or discard your changes to restore an earlier state." : null}
            onClose={() => setShowsHistory(false)}
          />
        </Suspense>
      )}
    </Dialog>
  );
}

function referencesOf({ schema }: TableOverview, document: Fields) {
  return Object.entries(propertiesOf(schema)).flatMap(([name, property]) => {
    const [table, id] = [tableOf(property), document[name]];
    return table === null || typeof id !== "string" ? [] : [{ name, id, to: table }];
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
