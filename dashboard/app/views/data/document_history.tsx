/** History of a document: when it changed, by which function, on whose behalf, and which fields. */
import { useEffect, useId, useState } from "react";
import { useAction } from "syncline/react";
import { deepEqual } from "../../../../mod/protocol/deep_equal.ts";
import type { DocumentChange, DocumentChanges } from "../../../../mod/ops/admin/document_history.ts";
import { api } from "../../server/api.ts";
import { href } from "../../shell/route.ts";
import { useCallerNames } from "../../ui/caller_names.ts";
import { Button } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Time } from "../../ui/format.tsx";
import { Empty, Loading, Table } from "../../ui/view.tsx";

export function DocumentHistory({ id, onRestore, cannotRestore, onClose }: {
  readonly id: string;
  /** Stores an earlier state; `null` if the table is read-only. */
  readonly onRestore: ((document: Fields) => void) | null;
  /** Why no state can be restored now, or `null`. */
  readonly cannotRestore: string | null;
  readonly onClose: () => void;
}) {
  const reasonId = useId();
  const read = useAction(api.data.history);
  const [history, setHistory] = useState<DocumentChanges>();
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    read({ id }).then(
      setHistory,
      (failure) => setError(failure instanceof Error ? failure.message : String(failure)),
    );
  }, [read, id]);
  const changes = history?.changes ?? [];
  const nameOf = useCallerNames(changes.map(({ run }) => run?.caller ?? null));
  return (
    <Dialog open form="large" title="History" text={`Changes of ${id}`} onClose={onClose}>
      {error !== null && <p className="field-error" role="alert">{error}</p>}
      {history === undefined && error === null && <Loading />}
      {history === null && (
        <Empty title="This server keeps no history">
          <p>
            Replication keeps earlier states of documents. Start the server with <code>--replicate-to</code>.
          </p>
        </Empty>
      )}
      {history && (
        <div className="stack">
          {cannotRestore !== null && onRestore !== null && changes.length > 1 && (
            <p className="quiet" id={reasonId}>{cannotRestore}</p>
          )}
          {changes.length === 0 && <Empty title="No changes found" />}
          {changes.map((change, position) => (
            <Change
              key={change.ts}
              change={change}
              before={changes[position + 1]}
              isFirst={position === changes.length - 1 && isCreation(change)}
              name={change.run === null ? null : nameOf(change.run.caller)}
              onRestore={position === 0 ? null : onRestore}
              disabledBy={cannotRestore === null ? undefined : reasonId}
            />
          ))}
          {history.since !== null && (
            <p className="quiet">
              Searched changes since <Time at={history.since} />.
            </p>
          )}
        </div>
      )}
    </Dialog>
  );
}

/** Whether a change, before which no other is known, created its document. */
function isCreation({ at, document }: DocumentChange): boolean {
  return at - Number(document?.["_creationTime"]) < CREATION_MS;
}

/** Maximum time between the start of a mutation and its commit. */
const CREATION_MS = 5_000;

function Change({ change: { at, ts, document, run }, before, isFirst, name, onRestore, disabledBy }: {
  readonly change: DocumentChange;
  /** The previous change; `undefined` if it is not known. */
  readonly before: DocumentChange | undefined;
  /** Whether it created the document. */
  readonly isFirst: boolean;
  /** Name of the caller. */
  readonly name: string | null;
  readonly onRestore: ((document: Fields) => void) | null;
  /** ID of the element that says why nothing can be restored now. */
  readonly disabledBy: string | undefined;
}) {
  const fields = document === null ? [] : changedFields(before?.document ?? null, document);
  const what = document === null ? "deleted" : isFirst || before?.document === null ? "inserted" : "changed";
  return (
    <section aria-label={`Commit ${ts}`}>
      <p className="row change">
        <span className="grow">
          <strong>{what}</strong> <Time at={at} />{" "}
          {run === null ? <span className="quiet">by a run that the log no longer has</span> : (
            <>
              by {run.function === MIGRATION ? "" : `${name} in `}
              <a
                className={placeOf(run.function) === null ? "mono" : undefined}
                href={href(["logs"], { run: String(run.id), system: "true" })}
              >
                {placeOf(run.function) ?? run.function}
              </a>
            </>
          )}
        </span>
        {document !== null && onRestore !== null && (
          <Button
            title={`Stores the document as it was after commit ${ts}, including the change shown here`}
            disabled={disabledBy !== undefined}
            aria-describedby={disabledBy}
            onClick={() => onRestore(document)}
          >
            Restore the state after this change
          </Button>
        )}
      </p>
      {fields.length > 0 && (
        <Table cards head={before?.document ? ["Field", "Before", "After"] : ["Field", "Value"]}>
          {fields.map((field) => (
            <tr key={field}>
              <td className="mono">{field}</td>
              {before?.document && <td className="mono wrap">{shown(before.document[field])}</td>}
              <td className="mono wrap">{shown(document?.[field])}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

/** Path of the function that changes the documents of a migration, which has no caller. */
const MIGRATION = "_system/deploy:migrationStep";

/** Where a change was made, if not by a function of the app. */
function placeOf(path: string): string | null {
  if (path.startsWith("_admin/data:")) return "the dashboard";
  return path === MIGRATION ? "a migration" : null;
}

type Fields = NonNullable<DocumentChange["document"]>;

function changedFields(before: Fields | null, after: Fields): readonly string[] {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after)]);
  return [...names].filter((name) =>
    !(name === "_id" || name === "_creationTime") && !deepEqual(before?.[name], after[name])
  );
}

function shown(value: unknown): string {
  return value === undefined ? "–" : JSON.stringify(value);
}
