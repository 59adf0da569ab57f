/** Backups that the server makes by itself, in a folder or a bucket: whether it can be used, and what is there. */
import { adminSession } from "../../server/admin_session.ts";
import type { ScheduledBackups } from "../../server/stats.ts";
import { href } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import type { Question } from "../../ui/confirm.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Table } from "../../ui/table.tsx";
import { Time } from "../../ui/texts.tsx";
import { useRequest } from "../../ui/use_request.ts";
import { Card, Empty } from "../../ui/view.tsx";
import { download, scheduledPath, verify } from "./archive.ts";

/** Asking a bucket costs something. */
const ASKED_EVERY_MS = 120_000;

export function Scheduled({ onRun, onAsk, busy }: {
  /** Runs long work, and tells what it is meanwhile. */
  readonly onRun: (what: string, work: () => Promise<unknown>, done?: string) => Promise<void>;
  readonly onAsk: (question: Question) => void;
  readonly busy: boolean;
}) {
  const { value, error, again } = useRequest<ScheduledBackups>(
    "/api/admin/scheduled-backups",
    ASKED_EVERY_MS,
  );
  if (error !== null) {
    return (
      <Card title="Made by the schedule">
        <p className="field-error" role="alert">{error}</p>
      </Card>
    );
  }
  if (value === undefined) return null;
  if (value.place === null) {
    return (
      <Card title="Made by the schedule">
        <Empty title="The server can make backups by itself">
          <p>
            Say how often, and to which folder or bucket, in <a href={href(["settings"])}>Settings</a>.
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
          Made by the schedule <span className="quiet mono">{place}</span>{" "}
          {value.error !== undefined && <Badge tone="bad">cannot be read</Badge>}
        </>
      }
      actions={
        <Button
          disabled={busy}
          onClick={() => void onRun(`${place} is tried…`, check, `${place} can be used.`).then(again)}
        >
          Test this place
        </Button>
      }
    >
      {value.error !== undefined && <p className="field-error card-body" role="alert">{value.error}</p>}
      {value.error === undefined && backups.length === 0 && <Empty title="None has been made yet" />}
      {backups.length > 0 && (
        <Table head={["Name", "Made"]} actions>
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
                    { text: "Download", run: () => void download(scheduledPath(name)) },
                    {
                      text: "Verify",
                      run: () =>
                        void onRun(`${name} is fetched and checked…`, () => verify(scheduledPath(name))),
                    },
                    {
                      text: "Restore…",
                      run: () =>
                        onAsk({
                          title: "Restore this backup?",
                          text:
                            "It is checked now and applied at the next start. Everything that came after it goes, administrators and sessions included.",
                          button: "Check and stage",
                          done: "The restore is staged: it is applied at the next start.",
                          run: () =>
                            onRun(
                              `${name} is fetched and checked…`,
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
