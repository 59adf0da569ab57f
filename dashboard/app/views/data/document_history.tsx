/**
 * History of a document: when it changed, by which function, on whose behalf, and which fields. Where the replica's history is
 * incomplete, it shows entries of the audit log and the time of a backup.
 */
import { useEffect, useId, useState } from "react";
import { useAction } from "syncline/react";
import { deepEqual } from "../../../../mod/protocol/deep_equal.ts";
import type { DocumentChange, DocumentChanges } from "../../../../mod/ops/admin/document_history.ts";
import { api } from "../../server/api.ts";
import type { BackupList } from "../../server/stats.ts";
import { href } from "../../shell/route.ts";
import { useCallerNames } from "../../ui/caller_names.ts";
import { Button } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Time } from "../../ui/format.tsx";
import { ListEnd, useLiveList, useRequest } from "../../ui/use_request.tsx";
import { Empty, Loading, Table } from "../../ui/view.tsx";
import { AuditEntry } from "../../ui/audit_entry.tsx";

/** Stores an earlier state, given with its time. */
type Restore = (document: Fields, at: number) => void;

export function DocumentHistory({ table, id, onRestore, cannotRestore, onClose }: {
  readonly table: string;
  readonly id: string;
  /** `null` if the table is read-only. */
  readonly onRestore: Restore | null;
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
  const oldest = changes.at(-1);
  const before = history?.before ?? null;
  const isComplete = oldest !== undefined && (before !== null || isCreation(oldest));
  const nameOf = useCallerNames(changes.map(({ run }) => run?.caller ?? null));
  return (
    <Dialog open form="large" title="History" text={`Changes of ${id}`} onClose={onClose}>
      {error !== null && <p className="field-error" role="alert">{error}</p>}
      {history === undefined && error === null && <Loading />}
      {history === null && (
        <p className="quiet">
          Replication keeps the earlier states of documents. This server does not replicate: start it with
          {" "}
          <code>--replicate-to</code>.
        </p>
      )}
      {history && (
        <div className="stack">
          {cannotRestore !== null && onRestore !== null && (changes.length > 1 || before !== null) && (
            <p className="quiet" id={reasonId}>{cannotRestore}</p>
          )}
          {changes.length === 0 && <Empty title="The replica has no changes of this document" />}
          {changes.map((change, position) => (
            <Change
              key={change.ts}
              change={change}
              before={changes[position + 1] ?? before ?? undefined}
              isFirst={position === changes.length - 1 && isCreation(change)}
              name={change.run === null ? null : nameOf(change.run.caller)}
              onRestore={position === 0 ? null : onRestore}
              disabledBy={cannotRestore === null ? undefined : reasonId}
            />
          ))}
          {before !== null && before.document !== null && (
            <section aria-label="State before these changes">
              <p className="row">
                <span className="grow">
                  <strong>before</strong>, in the snapshot of <Time at={before.at} />
                </span>
                <RestoreButton
                  text="Restore this state"
                  title="The state before these changes"
                  state={{ document: before.document, at: before.at }}
                  onRestore={onRestore}
                  disabledBy={cannotRestore === null ? undefined : reasonId}
                />
              </p>
              <Table head={["Field", "Value"]}>
                {changedFields(null, before.document).map((field) => (
                  <tr key={field}>
                    <td className="mono">{field}</td>
                    <td className="mono wrap">{shown(before.document?.[field])}</td>
                  </tr>
                ))}
              </Table>
            </section>
          )}
          {history.since !== null && (
            <p className="quiet">
              Searched changes since <Time at={history.since} />.
            </p>
          )}
        </div>
      )}
      {(history !== undefined || error !== null) && !isComplete && (
        <OtherSources table={table} id={id} until={oldest?.at} />
      )}
    </Dialog>
  );
}

/** Entries of the audit log about a document, and a backup from before its changes if the time of the first one is known. */
function OtherSources({ table, id, until }: {
  readonly table: string;
  readonly id: string;
  /** Time of the oldest known change. */
  readonly until: number | undefined;
}) {
  const entries = useLiveList(api.audit.list, { text: id });
  const nameOf = useCallerNames([]);
  const { value } = useRequest<BackupList>("/api/admin/backups");
  // Entries that are not loaded may be older.
  const oldest = until ??
    (entries.status === "Exhausted" ? entries.results.at(-1)?._creationTime : undefined);
  const backup = oldest === undefined ? undefined : value?.backups.filter(({ error }) => error === undefined)
    .map(({ createdAt }) => Date.parse(createdAt)).filter((at) => at < oldest).toSorted((a, b) => b - a)[0];
  return (
    <div className="stack">
      <h2>Audit log</h2>
      {entries.results.map((row) => (
        <div key={row._id}>
          <Time at={row._creationTime} /> <AuditEntry row={row} nameOf={nameOf} />
        </div>
      ))}
      {entries.results.length === 0 && entries.status === "Exhausted" && (
        <p className="quiet">No administrator changed this document, or it was changed with many others.</p>
      )}
      <ListEnd list={entries} />
      <h2>Earlier states</h2>
      <p>
        {backup === undefined ? oldest !== undefined && "No manual backup is older than these changes. " : (
          <>
            A backup from before these changes is of <Time at={backup} />.{" "}
          </>
        )}
        <a href={href(["backups"], { table })}>Copy {table} from a backup or a point in time</a>
      </p>
    </div>
  );
}

function RestoreButton({ text, title, state, onRestore, disabledBy }: {
  readonly text: string;
  readonly title: string;
  readonly state: { readonly document: Fields; readonly at: number };
  readonly onRestore: Restore | null;
  /** ID of the element that says why nothing can be restored now. */
  readonly disabledBy: string | undefined;
}) {
  if (onRestore === null) return null;
  return (
    <Button
      title={title}
      disabled={disabledBy !== undefined}
      aria-describedby={disabledBy}
      onClick={() => onRestore(state.document, state.at)}
    >
      {text}
    </Button>
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
  readonly before: Pick<DocumentChange, "document"> | undefined;
  /** Whether it created the document. */
  readonly isFirst: boolean;
  /** Name of the caller. */
  readonly name: string | null;
  readonly onRestore: Restore | null;
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
              by {isServers(run) ? "" : `${name} in `}
              <a
                className={placeOf(run.function) === null ? "mono" : undefined}
                href={href(["logs"], { run: String(run.id), system: "true" })}
              >
                {placeOf(run.function) ?? run.function}
              </a>
            </>
          )}
        </span>
        {document !== null && (
          <RestoreButton
            text="Restore the state after this change"
            title={`Stores the document as it was after commit ${ts}, including the change shown here`}
            state={{ document, at }}
            {...{ onRestore, disabledBy }}
          />
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

/** Where the server's own functions change documents. */
const SERVICE_PLACES: Readonly<Record<string, string>> = {
  "_system/deploy:migrationStep": "a migration",
  "_system/admin:deleteStep": "a deletion of many documents",
  "_system/import:write": "an import or a copy of the table",
  "_system/import:empty": "an import or a copy of the table",
};

/** Where a change was made, if not by a function of the app. */
function placeOf(path: string): string | null {
  return path.startsWith("_admin/data:") ? "the dashboard" : SERVICE_PLACES[path] ?? null;
}

/** Whether the server made a change by itself, so that there is no caller to name. */
function isServers({ function: path, caller }: NonNullable<DocumentChange["run"]>): boolean {
  return caller === null && path.startsWith("_system/");
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
