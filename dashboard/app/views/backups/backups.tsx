/** Backups: made, kept, downloaded, checked and staged for the next start; and replication with its past. */
import { type ChangeEvent, useRef, useState } from "react";
import { adminSession } from "../../server/admin_session.ts";
import type { Backup, BackupList, StagedRestore as Staged } from "../../server/stats.ts";
import { href, useOpenedBy } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { useConfirm } from "../../ui/confirm.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { CheckField } from "../../ui/field.tsx";
import { Icon } from "../../ui/icon.tsx";
import { longWork, useIsBusy } from "../../ui/long_work.ts";
import { Menu } from "../../ui/menu.tsx";
import { Table } from "../../ui/table.tsx";
import { count, size, Time } from "../../ui/texts.tsx";
import { useRequest } from "../../ui/use_request.ts";
import { Card, Empty, Loading, View } from "../../ui/view.tsx";
import { backupPath, download, verify } from "./archive.ts";
import { Replication } from "./replication.tsx";
import { Scheduled } from "./scheduled.tsx";

const ASKED_EVERY_MS = 15_000;

export function Backups() {
  const { value, error, again } = useRequest<BackupList>("/api/admin/backups", ASKED_EVERY_MS);
  const restart = useRequest<{ readonly offered: boolean }>("/api/admin/restore/restart").value;
  const { ask, dialog } = useConfirm();
  const [making, setMaking] = useOpenedBy("backups");
  const busy = useIsBusy("backups");
  const file = useRef<HTMLInputElement>(null);

  async function run(what: string, work: () => Promise<unknown>, done?: string): Promise<void> {
    await longWork({ view: "backups", text: what, ...(done !== undefined && { done }) }, work);
    again();
  }

  function upload({ target }: ChangeEvent<HTMLInputElement>): void {
    const [archive] = target.files ?? [];
    target.value = "";
    if (archive === undefined) return;
    const path = `/api/admin/restore?name=${encodeURIComponent(archive.name)}`;
    void run(
      "The archive is sent and checked…",
      () => adminSession.fetch(path, { method: "POST", body: archive }),
      "The restore is staged: it is applied at the next start.",
    );
  }

  return (
    <View
      title="Backups"
      text="Archives of everything: documents, users, and files when asked."
      actions={
        <>
          <input ref={file} type="file" hidden accept=".zst" onChange={upload} />
          <Button disabled={busy} onClick={() => file.current?.click()}>Restore from a file…</Button>
          <Button tone="accent" disabled={busy} onClick={() => setMaking(true)}>
            <Icon name="plus" /> Back up now
          </Button>
        </>
      }
    >
      {error !== null && <p className="field-error" role="alert">{error}</p>}
      {value?.restore && (
        <StagedRestore
          staged={value.restore}
          restart={restart?.offered ?? null}
          onCancel={() =>
            void run(
              "Cancelling…",
              () => adminSession.fetch("/api/admin/restore", { method: "DELETE" }),
              "Nothing is staged any more.",
            )}
          onRestart={() =>
            ask({
              title: "Restart the server?",
              text: "Open connections close and come back. The staged restore is applied.",
              button: "Restart",
              done: "The server restarts.",
              run: () => adminSession.fetch("/api/admin/restore/restart", { method: "POST" }),
            })}
        />
      )}
      <Card flush title="Made here">
        {value === undefined && error === null && <Loading />}
        {value?.backups.length === 0 && (
          <Empty title="There is no backup yet">
            <p>
              Make one now, or let the server make them: <a href={href(["settings"])}>Settings</a>.
            </p>
          </Empty>
        )}
        {value !== undefined && value.backups.length > 0 && (
          <Table head={["Name", "Made", { number: "Commit" }, { number: "Size" }, "Holds"]} actions>
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
                        run: () => void download(backupPath(backup.name)),
                      },
                      {
                        text: "Verify",
                        run: () =>
                          void run(`${backup.name} is checked…`, () =>
                            verify(backupPath(backup.name))),
                      },
                      {
                        text: "Restore…",
                        run: () =>
                          ask({
                            title: "Restore this backup?",
                            text:
                              "It is checked now and applied at the next start. Everything that came after it goes, administrators and sessions included.",
                            button: "Check and stage",
                            done: "The restore is staged: it is applied at the next start.",
                            run: async () => {
                              await adminSession.fetch(`${backupPath(backup.name)}/restore`, {
                                method: "POST",
                              });
                              again();
                            },
                          }),
                      },
                      {
                        text: "Delete",
                        tone: "bad",
                        run: () =>
                          ask({
                            title: "Delete this backup?",
                            text: backup.name,
                            button: "Delete backup",
                            done: "The backup is deleted.",
                            run: async () => {
                              await adminSession.fetch(backupPath(backup.name), { method: "DELETE" });
                              again();
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
      <Scheduled onRun={run} busy={busy} onAsk={ask} />
      <Replication onStaged={again} />
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
              "The backup is being made…",
              () => adminSession.fetch("/api/admin/backups", init),
              "The backup is made.",
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

function StagedRestore({ staged, restart, onCancel, onRestart }: {
  readonly staged: Staged;
  /** Whether somebody would start the server again; `null` while that is not known. */
  readonly restart: boolean | null;
  readonly onCancel: () => void;
  readonly onRestart: () => void;
}) {
  return (
    <Card
      title={
        <>
          A restore is staged <Badge tone="warn">applied at the next start</Badge>
        </>
      }
      actions={
        <>
          {restart && <Button onClick={onRestart}>Restart now</Button>}
          <Button tone="bad" onClick={onCancel}>Cancel the restore</Button>
        </>
      }
    >
      <dl className="facts">
        <dt>State of</dt>
        <dd>
          <Time at={Date.parse(staged.createdAt)} />
        </dd>
        <dt>Commit</dt>
        <dd>{count(staged.ts)}</dd>
        <dt>Documents</dt>
        <dd>{count(staged.documents)} in {count(staged.tables)} tables</dd>
        <dt>From</dt>
        <dd className="mono">{staged.source}</dd>
      </dl>
      {restart === false && (
        <p className="quiet">
          This server was started such that nobody would start it again: stop it and start it on its machine,
          or run it under a supervisor with <code>--restart-exit-code</code>.
        </p>
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
      text="One consistent state; nobody has to wait for it."
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="accent" onClick={() => onMake({ includeFiles, includeAux })}>Back up</Button>
        </>
      }
    >
      <CheckField
        label="With the contents of stored files"
        checked={includeFiles}
        onChange={(event) => setFiles(event.target.checked)}
      />
      <CheckField
        label="With the execution log"
        checked={includeAux}
        onChange={(event) => setAux(event.target.checked)}
      />
    </Dialog>
  );
}
