/** First steps with a new server, until they are done or hidden in this browser. */
import { useState } from "react";
import { useQuery } from "syncline/react";
import { type AdminRole, isAllowed } from "../../../../mod/functions/admin_roles.ts";
import { api } from "../../server/api.ts";
import type { BackupList, Stats } from "../../server/stats.ts";
import { href } from "../../shell/route.ts";
import { useRole } from "../../ui/access.tsx";
import { Button, Icon } from "../../ui/controls.tsx";
import { Card } from "../../ui/view.tsx";

/** Local storage key. */
const HIDDEN = "syncline.checklistHidden";

interface Step {
  readonly title: string;
  readonly text: string;
  readonly to: string;
  readonly done: boolean;
  /** Role that the step needs. */
  readonly needs: AdminRole;
}

export function Checklist({ stats, backups }: {
  readonly stats: Stats | undefined;
  readonly backups: BackupList | undefined;
}) {
  const [hidden, setHidden] = useState(() => localStorage.getItem(HIDDEN) !== null);
  const role = useRole();
  const steps =
    useSteps({ stats, backups, skip: hidden })?.filter(({ needs }) =>
      role !== undefined && isAllowed(role, needs)
    ) ?? null;
  if (hidden || steps === null || steps.every(({ done }) => done)) return null;
  return (
    <Card
      title={`First steps: ${steps.filter(({ done }) => done).length} of ${steps.length} done`}
      flush
      actions={
        <Button
          onClick={() => {
            localStorage.setItem(HIDDEN, "true");
            setHidden(true);
          }}
        >
          Hide
        </Button>
      }
    >
      <ul className="steps">
        {steps.map(({ title, text, to, done }) => (
          <li key={title} data-done={done}>
            {done ? <Icon name="check" /> : <span className="step" />}
            <a href={to}>{title}</a>
            <span className="quiet">{done ? "done" : text}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** Returns `null` until it is known which steps are done. */
function useSteps({ stats, backups, skip }: {
  readonly stats: Stats | undefined;
  readonly backups: BackupList | undefined;
  readonly skip: boolean;
}): readonly Step[] | null {
  const users = useQuery(api.users.list, skip ? "skip" : { paginationOpts: { numItems: 1, cursor: null } });
  const keys = useQuery(api.apiKeys.list, skip ? "skip" : {});
  const settings = useQuery(api.settings.list, skip ? "skip" : {});
  if (!stats || !backups || !users || !keys || !settings) return null;
  const isSet = (...names: string[]) =>
    settings.some(({ name, given, set }) => names.includes(name) && (given !== null || set));
  return [
    {
      title: "Call a function",
      text: "Run a query or mutation, or open your app.",
      to: href(["functions"]),
      done: stats.functions.some(({ function: path, day }) => !path.startsWith("_") && day !== null),
      needs: "editor",
    },
    {
      title: "Create a user",
      text: "Or let users sign up.",
      to: href(["users"], { make: "true" }),
      done: users.page.length > 0,
      needs: "editor",
    },
    {
      title: "Set the public address",
      text: "Start the server with --public-url, for links in mails and sign-in.",
      to: "./docs/self_hosting",
      done: stats.publicUrl !== null,
      needs: "owner",
    },
    {
      title: "Set up mail",
      text: "For verification, password resets and alerts.",
      to: href(["settings", "mail"]),
      done: isSet("smtpUrl"),
      needs: "owner",
    },
    {
      title: "Make a backup",
      text: "Then schedule backups in the settings, or replicate.",
      to: href(["backups"], { make: "true" }),
      done: backups.newest !== null || backups.replication.enabled,
      needs: "editor",
    },
    {
      title: "Create a deploy key",
      text: "To deploy from your machine or CI.",
      to: href(["deploying"], { make: "deploy" }),
      done: keys.some(({ deploy }) => deploy),
      needs: "owner",
    },
    {
      title: "Receive alerts",
      text: "By mail or webhook, when something needs you.",
      to: href(["settings", "alerts"]),
      done: isSet("alertMail", "alertWebhook"),
      needs: "owner",
    },
  ];
}
