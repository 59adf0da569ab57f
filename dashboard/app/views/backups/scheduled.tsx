/** Scheduled backups: status of the target, and the backups stored there. */
import { adminSession } from "../../server/admin_session.ts";
import type { ScheduledBackups } from "../../server/stats.ts";
import { href } from "../../shell/route.ts";
import { Badge, Button } from "../../ui/controls.tsx";
import type { Confirmation } from "../../ui/dialog.tsx";
import { count, Time } from "../../ui/format.tsx";
import { Menu } from "../../ui/menu.tsx";
import { runPageTask } from "../../ui/page_tasks.ts";
import { saveFile } from "../../ui/save_file.ts";
import { Card, Empty, Table } from "../../ui/view.tsx";
import { showToast } from "../../ui/toasts.tsx";
import { useRequest } from "../../ui/use_request.tsx";

export const RESTORE_QUESTION = {
  title: "Restore everything from this backup?",
  text:
    "The backup is verified now and applied at the next start. Everything written since then will be lost, including administrators and sessions. To restore one table only, copy it instead.",
  button: "Verify and prepare restore",
  done: "Restore prepared. It will be applied at the next start.",
} as const;

/** Endpoint of a manual backup. */
export const backupPath = (name: string): string => `/api/admin/backups/${encodeURIComponent(name)}`;

/** Endpoint of a scheduled backup. */
export const scheduledPath = (name: string): string =>
  `/api/admin/scheduled-backups/${encodeURIComponent(name)}`;

/** Downloads an archive. It is fetched with an Authorization header so that the token never appears in an address. */
export async function download(path: string): Promise<void> {
  const name = decodeURIComponent(path.split("/").at(-1) ?? "");
  await runPageTask(
    { view: "backups", text: `Downloading ${name}…`, cancelable: true },
    async ({ signal }) => {
      saveFile(name, await (await adminSession.fetch(path, { signal })).blob());
    },
  );
}

/** Unpacks and verifies an archive on the server, and shows what it contains. */
export async function verify(path: string): Promise<void> {
  const response = await adminSession.fetch(`${path}/verify`, { method: "POST" });
  const { holds } = await response.json() as {
    readonly holds: { readonly ts: number; readonly tables: number; readonly documents: number };
  };
  showToast(
    `The archive is intact: ${count(holds.documents)} documents in ${
      count(holds.tables)
    } tables, including those of the server, up to commit ${count(holds.ts)}.`,
  );
}

/** Listing a bucket costs money. */
const ASKED_EVERY_MS = 120_000;

export function Scheduled({ onRun, onAsk, onCopy, busy }: {
  /** Runs a background task with the given description. */
  readonly onRun: (what: string, work: () => Promise<unknown>, done?: string) => Promise<void>;
  readonly onAsk: (question: Confirmation) => void;
  /** Opens the dialog that copies one table. */
  readonly onCopy: (backup: { readonly name: string; readonly path: string }) => void;
  readonly busy: boolean;
}) {
  const { value, error, refetch } = useRequest<ScheduledBackups>(
    "/api/admin/scheduled-backups",
    ASKED_EVERY_MS,
  );
  if (error !== null) {
    return (
      <Card title="Scheduled">
        <p className="field-error" role="alert">{error}</p>
      </Card>
    );
  }
  if (value === undefined) return null;
  if (value.place === null) {
    return (
      <Card title="Scheduled">
        <Empty title="No schedule is set">
          <p>
            Set an interval and a folder or bucket in <a href={href(["settings", "backups"])}>Settings</a>.
          </p>
        </Empty>
      </Card>
    );
  }
  const { place, backups } = value;
  async function check(): Promise<void> {
    const response = await adminSession.fetch("/api/admin/scheduled-backups/check", { method: "POST" });
    const { error } = await response.json() as { readonly error: string | null };
    if (error !== null) throw new Error(error);
  }
  return (
    <Card
      flush
      title={
        <>
          Scheduled <span className="quiet mono">{place}</span>{" "}
          {value.error !== undefined && <Badge tone="bad">unreachable</Badge>}
        </>
      }
      actions={
        <Button
          needs="editor"
          disabled={busy}
          onClick={() =>
            void onRun(`Testing ${place}…`, check, `${place} is reachable and writable.`).then(refetch)}
        >
          Test target
        </Button>
      }
    >
      {value.error !== undefined && <p className="field-error card-body" role="alert">{value.error}</p>}
      {value.error === undefined && backups.length === 0 && <Empty title="No backups yet" />}
      {backups.length > 0 && (
        <Table head={["Name", "Created"]} actions>
          {backups.map(({ name, createdAt }) => (
            <tr key={name}>
              <td className="mono">{name}</td>
              <td>
                <Time at={Date.parse(createdAt)} as="ago" />
              </td>
              <td className="number">
                <Menu
                  label={`More about ${name}`}
                  items={[
                    { text: "Download", needs: "owner", run: () => void download(scheduledPath(name)) },
                    {
                      text: "Verify",
                      needs: "editor",
                      run: () =>
                        void onRun(`Downloading and verifying ${name}…`, () => verify(scheduledPath(name))),
                    },
                    {
                      text: "Copy one table…",
                      needs: "owner",
                      run: () => onCopy({ name, path: scheduledPath(name) }),
                    },
                    {
                      text: "Restore everything…",
                      needs: "owner",
                      run: () =>
                        onAsk({
                          ...RESTORE_QUESTION,
                          run: () =>
                            onRun(
                              `Downloading and verifying ${name}…`,
                              () => adminSession.fetch(`${scheduledPath(name)}/restore`, { method: "POST" }),
                            ),
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
  );
}
