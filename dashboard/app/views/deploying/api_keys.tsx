/** API keys of services and users, and deploy keys: created, shown once, revoked. */
import { useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { useCreateDialog } from "../../shell/route.ts";
import { Badge, Button, CheckField, Icon, TextField } from "../../ui/controls.tsx";
import { FormDialog, useConfirm } from "../../ui/dialog.tsx";
import { Time } from "../../ui/format.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { TableCard } from "../../ui/view.tsx";
import { ShownKey } from "./shown_key.tsx";

const DAY_MS = 86_400_000;
/** Kinds of functions that a key may call. */
const KINDS = 4;

type Key = NonNullable<ReturnType<typeof useKeys>>[number];

const useKeys = () => useQuery(api.apiKeys.list);

export function ApiKeys() {
  const keys = useKeys();
  const userIds = keys?.flatMap(({ userId }) => userId ?? []).slice(0, 200) ?? [];
  const emails = useQuery(api.users.emails, userIds.length === 0 ? "skip" : { userIds }) ?? {};
  const administrators = useQuery(api.administrators.list) ?? [];
  const creator = (id: string) =>
    emails[id] ?? administrators.find(({ adminId }) => adminId === id)?.email ?? id;
  const revoke = useMutation(api.apiKeys.revoke);
  const { ask, dialog } = useConfirm();
  const [making, setMaking] = useCreateDialog("deploying");
  /** The key for which another one is created. */
  const [replaced, setReplaced] = useState<Key | null>(null);
  return (
    <>
      <TableCard
        title="API keys and deploy keys"
        titleActions={
          <Button onClick={() => setMaking(true)}>
            <Icon name="plus" /> New API key
          </Button>
        }
        empty={{
          title: "No API keys",
          text: "An API key lets a program call some functions of the app, or deploy from a laptop or CI.",
        }}
        head={["Name", "Key", "May call", "Acts as", "Last used"]}
        actions
        rows={keys}
        row={(key) => {
          const { keyId, name, shown, kinds, functions, deploy, userId, createdBy, expiresAt, lastUsedAt } =
            key;
          return (
            <tr key={keyId}>
              <td className="args">
                {name} {expiresAt !== null && expiresAt <= Date.now() && <Badge tone="bad">expired</Badge>}
                <div className="quiet small">
                  created by {creator(createdBy)}
                  {expiresAt !== null && expiresAt > Date.now() && (
                    <>
                      , expires <Time at={expiresAt} />
                    </>
                  )}
                </div>
              </td>
              <td className="mono args">{shown}…</td>
              <td>
                {deploy ? "deploys only" : <span className="mono">{functions.join(", ")}</span>}
                {!deploy && kinds.length < KINDS && ` (${kinds.join(", ")})`}
              </td>
              <td>{userId === null ? "a service" : emails[userId] ?? userId}</td>

              <td>{lastUsedAt === null ? "never" : <Time at={lastUsedAt} as="ago" />}</td>
              <td className="number">
                <span className="row end">
                  <Button
                    aria-label={`Replace ${name}`}
                    title="Creates a key with the same permissions. This one works until you revoke it."
                    onClick={() => setReplaced(key)}
                  >
                    Replace…
                  </Button>
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
                </span>
              </td>
            </tr>
          );
        }}
      />
      {making && <NewApiKey replaced={null} onClose={() => setMaking(false)} />}
      {replaced !== null && <NewApiKey replaced={replaced} onClose={() => setReplaced(null)} />}
      {dialog}
    </>
  );
}

function NewApiKey({ replaced, onClose }: {
  /** The key that the new one replaces. */
  readonly replaced: Key | null;
  readonly onClose: () => void;
}) {
  const create = useAction(api.apiKeys.create);
  const revoke = useMutation(api.apiKeys.revoke);
  const [deploy, setDeploy] = useState(replaced?.deploy ?? false);
  const [key, setKey] = useState<string | null>(null);
  async function submit(form: FormData): Promise<void> {
    const text = (name: string) => String(form.get(name)).trim();
    const days = Number(text("days"));
    await attempt(async () => {
      const created = await create({
        name: text("name"),
        ...(deploy ? { deploy } : {
          functions: text("functions").split(/[,\n]/).map((pattern) => pattern.trim()).filter(Boolean),
          // A deploy key has none, which no other key may have.
          ...(replaced !== null && replaced.kinds.length > 0 && replaced.kinds.length < KINDS &&
            { kinds: replaced.kinds }),
          ...(text("user") !== "" && { userId: text("user") }),
        }),
        ...(days > 0 && { expiresAt: Date.now() + days * DAY_MS }),
      });
      setKey(created.key);
    });
  }
  if (key !== null) {
    return (
      <ShownKey
        label="API key"
        value={key}
        onClose={onClose}
        {...(replaced !== null && {
          revoke: {
            text: `Store it where ${replaced.name} is used, then revoke the old key, which still works.`,
            run: async () => {
              await revoke({ keyId: replaced.keyId });
              showToast("Old key revoked.");
              onClose();
            },
          },
        })}
      >
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
    <FormDialog
      title={replaced === null ? "New API key" : `Replace ${replaced.name}`}
      {...(replaced !== null && { text: "The old key works until you revoke it." })}
      button="Create key"
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label="Name"
        name="name"
        required
        autoFocus
        defaultValue={replaced?.name}
        hint="Where it will be used."
      />
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
            defaultValue={replaced?.functions.join(", ")}
            hint="Paths such as tasks:list, tasks:* or POST /hook, separated by commas."
          />
          <TextField
            label="User ID"
            name="user"
            defaultValue={replaced?.userId ?? undefined}
            hint="The user as whom it acts. Empty for a service."
          />
        </>
      )}
      <TextField
        label="Days until it expires"
        name="days"
        type="number"
        min={1}
        defaultValue={replaced === null ? undefined : lifetimeDays(replaced)}
        hint="Empty: never."
      />
    </FormDialog>
  );
}

/** Lifetime of a key in days. `undefined` if it does not expire. */
function lifetimeDays({ createdAt, expiresAt }: Key): number | undefined {
  return expiresAt === null ? undefined : Math.max(1, Math.round((expiresAt - createdAt) / DAY_MS));
}
