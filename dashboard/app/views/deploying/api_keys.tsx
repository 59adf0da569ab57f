/** API keys of services and users, and deploy keys: created, shown once, revoked. */
import { useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { Badge, Button, CheckField, Icon, TextField } from "../../ui/controls.tsx";
import { FormDialog, useConfirm } from "../../ui/dialog.tsx";
import { Time } from "../../ui/format.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { TableCard } from "../../ui/view.tsx";
import { ShownKey } from "./shown_key.tsx";

const DAY_MS = 86_400_000;

export function ApiKeys() {
  const keys = useQuery(api.apiKeys.list);
  const userIds = keys?.flatMap(({ userId }) => userId ?? []).slice(0, 200) ?? [];
  const emails = useQuery(api.users.emails, userIds.length === 0 ? "skip" : { userIds }) ?? {};
  const administrators = useQuery(api.administrators.list) ?? [];
  const creator = (id: string) =>
    emails[id] ?? administrators.find(({ adminId }) => adminId === id)?.email ?? id;
  const revoke = useMutation(api.apiKeys.revoke);
  const { ask, dialog } = useConfirm();
  const [making, setMaking] = useState(false);
  return (
    <>
      <TableCard
        title="API keys"
        titleActions={
          <Button onClick={() => setMaking(true)}>
            <Icon name="plus" /> New API key
          </Button>
        }
        empty={{
          title: "No API keys",
          text: "An API key lets a program call some functions of the app, or deploy from a laptop or CI.",
        }}
        head={["Name", "Key", "May call", "Acts as", "Created by", "Last used"]}
        actions
        rows={keys}
        row={({ keyId, name, shown, kinds, functions, deploy, userId, createdBy, expiresAt, lastUsedAt }) => (
          <tr key={keyId}>
            <td>
              {name}{" "}
              {expiresAt !== null && (expiresAt <= Date.now() ? <Badge tone="bad">expired</Badge> : (
                <Badge>
                  expires <Time at={expiresAt} />
                </Badge>
              ))}
            </td>
            <td className="mono">{shown}…</td>
            <td>
              {deploy ? "deploys only" : <span className="mono">{functions.join(", ")}</span>}
              {!deploy && kinds.length < 4 && ` (${kinds.join(", ")})`}
            </td>
            <td>{userId === null ? "a service" : emails[userId] ?? userId}</td>
            <td>{creator(createdBy)}</td>
            <td>{lastUsedAt === null ? "never" : <Time at={lastUsedAt} as="ago" />}</td>
            <td className="number">
              <Button
                aria-label={`Revoke ${name}`}
                onClick={() =>
                  ask({
                    title: `Revoke the API key "${name}"?`,
                    text: deploy
                      ? "Deploys with it are refused. Versions it has deployed stay live."
                      : "Calls with it are refused and its connections are closed at once.",
                    button: "Revoke key",
                    done: "Key revoked.",
                    run: () => revoke({ keyId }),
                  })}
              >
                Revoke
              </Button>
            </td>
          </tr>
        )}
      />
      {making && <NewApiKey onClose={() => setMaking(false)} />}
      {dialog}
    </>
  );
}

function NewApiKey({ onClose }: { readonly onClose: () => void }) {
  const create = useAction(api.apiKeys.create);
  const [deploy, setDeploy] = useState(false);
  const [key, setKey] = useState<string | null>(null);
  async function submit(form: FormData): Promise<void> {
    const text = (name: string) => String(form.get(name)).trim();
    const days = Number(text("days"));
    await attempt(async () => {
      const created = await create({
        name: text("name"),
        ...(deploy ? { deploy } : {
          functions: text("functions").split(/[,\n]/).map((pattern) => pattern.trim()).filter(Boolean),
          ...(text("user") !== "" && { userId: text("user") }),
        }),
        ...(days > 0 && { expiresAt: Date.now() + days * DAY_MS }),
      });
      setKey(created.key);
    });
  }
  if (key !== null) {
    return (
      <ShownKey label="API key" value={key} onClose={onClose}>
        {deploy
          ? (
            <>
              Pass it to <code>syncline deploy</code> as <code>SYNCLINE_DEPLOY_KEY</code>.
            </>
          )
          : (
            <>
              Send it as <code>Authorization: Bearer</code>, or pass it to <code>setAuth</code> of a client.
            </>
          )}
      </ShownKey>
    );
  }
  return (
    <FormDialog title="New API key" button="Create key" onSubmit={submit} onClose={onClose}>
      <TextField label="Name" name="name" required autoFocus hint="Where it will be used." />
      <CheckField
        label="Key for deploys only"
        checked={deploy}
        onChange={({ currentTarget }) => setDeploy(currentTarget.checked)}
      />
      {!deploy && (
        <>
          <TextField
            label="Functions"
            name="functions"
            required
            hint="Paths such as tasks:list, tasks:* or POST /hook, separated by commas."
          />
          <TextField label="User ID" name="user" hint="The user as whom it acts. Empty for a service." />
        </>
      )}
      <TextField label="Days until it expires" name="days" type="number" min={1} hint="Empty: never." />
    </FormDialog>
  );
}
