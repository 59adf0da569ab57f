/** Backups: create, download, verify and restore; and replication with point-in-time restore. */
import { type ChangeEvent, useRef, useState } from "react";
import { adminSession } from "../../server/admin_session.ts";
import type { Backup, BackupList, StagedRestore as Staged } from "../../server/stats.ts";
import { href, replace, useRoute } from "../../shell/route.ts";
import { useCreateDialog } from "../../ui/create_dialog.ts";
import { Badge, Button, CheckField, Icon } from "../../ui/controls.tsx";
import { CancelButton, Dialog, useConfirm } from "../../ui/dialog.tsx";
import { runPageTask, useIsBusy } from "../../ui/page_tasks.ts";
import { Menu } from "../../ui/menu.tsx";
import { Card, Empty, Loading, Table, View } from "../../ui/view.tsx";
import { count, size, Time } from "../../ui/format.tsx";
import { useRequest } from "../../ui/use_request.tsx";
import { backupPath, download, RESTORE_QUESTION, Scheduled, verify } from "./scheduled.tsx";
import { CopyTable } from "./copy_table.tsx";
import { Replication } from "./replication.tsx";
import { rangesOf } from "./restorable.ts";
import { RestoreTable } from "./restore_table.tsx";

const ASKED_EVERY_MS = 15_000;

export function Backups() {
  const { value, error, refetch } = useRequest<BackupList>("/api/admin/backups", ASKED_EVERY_MS);
  // The menu of a table leads here.
  const wantedTable = useRoute().search.get("table");
  /** The backup that a table is copied from. */
  const [copied, setCopied] = useState<{ readonly name: string; readonly path: string } | null>(null);
  const restart = useRequest<{ readonly offered: boolean }>("/api/admin/restore/restart").value;
  const { ask, dialog } = useConfirm();
  const [making, setMaking] = useCreateDialog(["backups"], { needs: "editor" });
  const busy = useIsBusy("backups");
  const file = useRef<HTMLInputElement>(null);

  async function run(what: string, work: () => Promise<unknown>, done?: string): Promise<void> {
    await runPageTask({ view: "backups", text: what, ...(done !== undefined && { done }) }, work);
    refetch();
  }

  function upload({ target }: ChangeEvent<HTMLInputElement>): void {
    const [archive] = target.files ?? [];
    target.value = "";
    if (archive === undefined) return;
    const path = `/api/admin/restore?name=${encodeURIComponent(archive.name)}`;
    void run(
      "Uploading and verifying the archive…",
      () => adminSession.fetch(path, { method: "POST", body: archive }),
      "Restore prepared. It will be applied at the next start.",
    );
  }

  return (
    <View
      title="Backups"
      text="Archives of documents, users and, optionally, files."
      actions={
        <>
          <input ref={file} type="file" hidden accept=".zst" onChange={upload} />
          <Button needs="owner" disabled={busy} onClick={() => file.current?.click()}>
            Restore from a file…
          </Button>
          <Button tone="accent" needs="editor" disabled={busy} onClick={() => setMaking(true)}>
            <Icon name="plus" /> Back up now
          </Button>
        </>
      }
    >
      {error !== null && <p className="field-error" role="alert">{error}</p>}
      {wantedTable !== null && value !== undefined && (
        <RestoreTable
          table={wantedTable}
          backups={value.backups}
          ranges={rangesOf(value.replication)}
          onClose={() => replace(["backups"])}
        />
      )}
      {copied !== null && (
        <CopyTable
          title={`Copy one table of ${copied.name}`}
          sourceOf={() => ({ backup: copied.path })}
          onClose={() => setCopied(null)}
        />
      )}
      {value?.restore && (
        <StagedRestore
          staged={value.restore}
          restart={restart?.offered ?? null}
          busy={busy}
          onCopied={refetch}
          onCancel={() =>
            void run(
              "Canceling…",
              () => adminSession.fetch("/api/admin/restore", { method: "DELETE" }),
              "Restore canceled.",
            )}
          onRestart={() =>
            ask({
              title: "Restart the server?",
              text: "Clients are disconnected and reconnect. The prepared restore is applied.",
              button: "Restart",
              done: "The server is restarting.",
              run: () => adminSession.fetch("/api/admin/restore/restart", { method: "POST" }),
            })}
        />
      )}
      <Card flush title="Manual">
        {value === undefined && error === null && <Loading />}
        {value?.backups.length === 0 && (
          <Empty title="No backups yet">
            <p>
              Create one now, or schedule backups in <a href={href(["settings", "backups"])}>Settings</a>.
            </p>
          </Empty>
        )}
        {value !== undefined && value.backups.length > 0 && (
          <Table head={["Name", "Created", { number: "Commit" }, { number: "Size" }, "Contents"]} actions>
            {value.backups.map((backup) => (
              <tr key={backup.name}>
                <td className="mono">{backup.name}</td>
                <td>
                  <Time at={Date.parse(backup.createdAt)} as="ago" />
                </td>
                <td className="number">{backup.ts === undefined ? "–" : count(backup.ts)}</td>
                <td className="number">{size(backup.size)}</td>
                <td>
                  {backup.error === undefined
                    ? partsText(backup.parts)
                    : <Badge tone="bad">{backup.error}</Badge>}
                </td>
                <td className="number">
                  <Menu
                    label={`More about ${backup.name}`}
                    items={[
                      {
                        text: "Download",
                        needs: "owner",
                        run: () => void download(backupPath(backup.name)),
                      },
                      {
                        text: "Verify",
                        needs: "editor",
                        run: () =>
                          void run(`Verifying ${backup.name}…`, () =>
                            verify(backupPath(backup.name))),
                      },
                      {
                        text: "Copy one table…",
                        needs: "owner",
                        run: () => setCopied({ name: backup.name, path: backupPath(backup.name) }),
                      },
                      {
                        text: "Restore everything…",
                        needs: "owner",
                        run: () =>
                          ask({
                            ...RESTORE_QUESTION,
                            run: async () => {
                              await adminSession.fetch(`${backupPath(backup.name)}/restore`, {
                                method: "POST",
                              });
                              refetch();
                            },
                          }),
                      },
                      {
                        text: "Delete",
                        needs: "owner",
                        tone: "bad",
                        run: () =>
                          ask({
                            title: "Delete this backup?",
                            text: backup.name,
                            button: "Delete backup",
                            done: "Backup deleted.",
                            run: async () => {
                              await adminSession.fetch(backupPath(backup.name), { method: "DELETE" });
                              refetch();
                            },
                          }),
                      },
                    ]}
                  />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Card>
      <Scheduled onRun={run} busy={busy} onAsk={ask} onCopy={setCopied} />
      <Replication onStaged={refetch} />
      {making && (
        <MakeBackup
          onClose={() => setMaking(false)}
          onMake={(parts) => {
            setMaking(false);
            const init = {
              method: "POST",
              headers: { "Content-Type": "application/json" },
              body: JSON.stringify(parts),
            };
            void run(
              "Creating a backup…",
              () => adminSession.fetch("/api/admin/backups", init),
              "Backup created.",
            );
          }}
        />
      )}
      {dialog}
    </View>
  );
}

function partsText(parts: Backup["parts"]): string {
  if (parts === undefined) return "–";
  const names = Array.isArray(parts)
    ? parts as readonly string[]
    : Object.entries(parts).filter(([, held]) => held).map(([name]) => name);
  return names.join(", ");
}

function StagedRestore({ staged, restart, busy, onCopied, onCancel, onRestart }: {
  readonly staged: Staged;
  /** Whether a supervisor would restart the server; `null` while unknown. */
  readonly restart: boolean | null;
  readonly busy: boolean;
  readonly onCopied: () => void;
  readonly onCancel: () => void;
  readonly onRestart: () => void;
}) {
  const [copying, setCopying] = useState(false);
  return (
    <Card
      title={
        <>
          Restore prepared <Badge tone="warn">pending restart</Badge>
        </>
      }
      actions={
        <>
          <Button needs="owner" disabled={busy} onClick={() => setCopying(true)}>Copy one table…</Button>
          {restart && <Button needs="owner" disabled={busy} onClick={onRestart}>Restart now</Button>}
          <Button tone="bad" needs="owner" disabled={busy} onClick={onCancel}>Cancel the restore</Button>
        </>
      }
    >
      <dl className="facts">
        <dt>Time</dt>
        <dd>
          <Time at={Date.parse(staged.createdAt)} />
        </dd>
        <dt>Commit</dt>
        <dd>{count(staged.ts)}</dd>
        <dt>Documents</dt>
        <dd>{count(staged.documents)} in {count(staged.tables)} tables, including those of the server</dd>
        <dt>Source</dt>
        <dd className="mono">{staged.source}</dd>
      </dl>
      {restart === false && (
        <p className="quiet">
          This server runs without a supervisor. Stop and start it manually, or run it under one with{" "}
          <code>--restart-exit-code</code>.
        </p>
      )}
      {copying && (
        <CopyTable
          title="Copy one table"
          text=" Then the prepared restore is canceled. If copying fails, it stays prepared."
          sourceOf={() => ({ stagedAt: staged.stagedAt })}
          onDone={onCopied}
          onClose={() => setCopying(false)}
        />
      )}
    </Card>
  );
}

function MakeBackup({ onClose, onMake }: {
  readonly onClose: () => void;
  readonly onMake: (parts: { readonly includeFiles: boolean; readonly includeAux: boolean }) => void;
}) {
  const [includeFiles, setFiles] = useState(true);
  const [includeAux, setAux] = useState(false);
  return (
    <Dialog
      open
      title="Back up now"
      text="A consistent snapshot. The server stays fully available."
      onClose={onClose}
      footer={
        <>
          <CancelButton />
          <Button tone="accent" onClick={() => onMake({ includeFiles, includeAux })}>Back up</Button>
        </>
      }
    >
      <CheckField
        label="Include stored files"
        checked={includeFiles}
        onChange={(event) => setFiles(event.target.checked)}
      />
      <CheckField
        label="Include the execution log"
        checked={includeAux}
        onChange={(event) => setAux(event.target.checked)}
      />
    </Dialog>
  );
}
