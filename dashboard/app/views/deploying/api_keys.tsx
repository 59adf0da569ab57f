/** API keys of services and users, and deploy keys: created, shown once, revoked. */
import { useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { useCreateDialog } from "../../ui/create_dialog.ts";
import { Badge, Button, Icon, TextField } from "../../ui/controls.tsx";
import { FormDialog, useConfirm } from "../../ui/dialog.tsx";
import { Time } from "../../ui/format.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { TableCard } from "../../ui/view.tsx";
import { ShownKey } from "./shown_key.tsx";

const DAY_MS = 86_400_000;
/** Kinds of functions that a key may call. */
const KINDS = 4;

/** As in `mod/auth/api_keys/api_keys.ts`. Random characters follow. */
const KEY_PREFIX = /^syncline_[a-z]+_/;

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
  const [makingApiKey, setMakingApiKey] = useCreateDialog(["deploying"], { needs: "owner" });
  const [makingDeployKey, setMakingDeployKey] = useCreateDialog(["deploying"], {
    needs: "owner",
    make: "deploy",
  });
  /** The key for which another one is created. */
  const [replaced, setReplaced] = useState<Key | null>(null);
  return (
    <>
      <TableCard
        title="API keys and deploy keys"
        titleActions={
          <>
            <Button needs="owner" onClick={() => setMakingApiKey(true)}>
              <Icon name="plus" /> New API key
            </Button>
            <Button needs="owner" onClick={() => setMakingDeployKey(true)}>
              <Icon name="plus" /> New deploy key
            </Button>
          </>
        }
        empty={{
          title: "No keys",
          text:
            "An API key lets a program call some functions of the app. A deploy key lets a laptop or CI deploy.",
        }}
        head={["Name", "Key", "May call", "Acts as", "Last used"]}
        actions
        rows={keys}
        row={(key) => {
          const { keyId, name, shown, kinds, functions, deploy, userId, createdBy, expiresAt, lastUsedAt } =
            key;
          const prefix = KEY_PREFIX.exec(shown)?.[0] ?? "";
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
              <td className="mono">
                {/* Breaks before the random characters, which may contain "_". */}
                {prefix}
                <wbr />
                {shown.slice(prefix.length)}…
              </td>
              <td>
                {deploy ? "deploys only" : <span className="mono">{functions.join(", ")}</span>}
                {!deploy && kinds.length < KINDS && ` (${kinds.join(", ")})`}
              </td>
              <td>{userId === null ? <>a&nbsp;service</> : emails[userId] ?? userId}</td>
              <td>{lastUsedAt === null ? "never" : <Time at={lastUsedAt} as="ago" />}</td>
              <td className="number">
                <span className="row end">
                  <Button
                    needs="owner"
                    aria-label={`Replace ${name}`}
                    title="Creates a key with the same permissions. This one works until you revoke it."
                    onClick={() => setReplaced(key)}
                  >
                    Replace…
                  </Button>
                  <Button
                    needs="owner"
                    aria-label={`Revoke ${name}`}
                    onClick={() =>
                      ask({
                        title: `Revoke the ${labelOf(deploy)} "${name}"?`,
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
      {makingApiKey && <NewKey deploy={false} onClose={() => setMakingApiKey(false)} />}
      {makingDeployKey && <NewKey deploy onClose={() => setMakingDeployKey(false)} />}
      {replaced !== null && (
        <NewKey
          deploy={replaced.deploy}
          replaced={replaced}
          onClose={() => setReplaced(null)}
        />
      )}
      {dialog}
    </>
  );
}

function labelOf(deploy: boolean): string {
  return deploy ? "deploy key" : "API key";
}

function NewKey({ deploy, replaced = null, onClose }: {
  readonly deploy: boolean;
  /** The key that the new one replaces. Optional. */
  readonly replaced?: Key | null;
  readonly onClose: () => void;
}) {
  const create = useAction(api.apiKeys.create);
  const revoke = useMutation(api.apiKeys.revoke);
  const [key, setKey] = useState<string | null>(null);
  async function submit(form: FormData): Promise<void> {
    const text = (name: string) => String(form.get(name)).trim();
    const days = Number(text("days"));
    await attempt(async () => {
      const created = await create({
        name: text("name"),
        ...(deploy ? { deploy: true as const } : {
          functions: text("functions").split(/[,\n]/).map((pattern) => pattern.trim()).filter(Boolean),
          ...(replaced !== null && replaced.kinds.length < KINDS && { kinds: replaced.kinds }),
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
        label={labelOf(deploy)}
        value={key}
        onClose={onClose}
        {...(replaced !== null && {
          revoke: {
            name: replaced.name,
            run: () => revoke({ keyId: replaced.keyId }),
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
      title={replaced === null ? `New ${labelOf(deploy)}` : `Replace ${replaced.name}`}
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
        hint={deploy ? "Where it will be used. The key allows deploys only." : "Where it will be used."}
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
