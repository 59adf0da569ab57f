/** Keys that may deploy and nothing else: made, shown once, revoked. */
import { type FormEvent, useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { useConfirm } from "../../ui/confirm.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { TextField } from "../../ui/field.tsx";
import { Icon } from "../../ui/icon.tsx";
import { attempt } from "../../ui/notes.tsx";
import { TableCard } from "../../ui/table.tsx";
import { Time } from "../../ui/texts.tsx";

export function DeployKeys() {
  const keys = useQuery(api.deployKeys.list);
  const administrators = useQuery(api.administrators.list) ?? [];
  const emails = new Map<string, string>(administrators.map(({ adminId, email }) => [adminId, email]));
  const revoke = useMutation(api.deployKeys.revoke);
  const { ask, dialog } = useConfirm();
  const [making, setMaking] = useState(false);
  return (
    <>
      <TableCard
        title="Deploy keys"
        tools={
          <Button onClick={() => setMaking(true)}>
            <Icon name="plus" /> New deploy key
          </Button>
        }
        none={{
          title: "There is no deploy key",
          text: (
            <>
              With one, <code>syncline deploy</code>{" "}
              brings code here from a laptop or from CI, and can do nothing else.
            </>
          ),
        }}
        head={["Name", "Created", "By", "Last used"]}
        actions
        rows={keys}
        row={({ keyId, name, createdAt, createdBy, lastUsedAt, revokedAt }) => (
          <tr key={keyId}>
            <td>
              {name} {revokedAt !== null && <Badge tone="bad">revoked</Badge>}
            </td>
            <td>
              <Time at={createdAt} as="ago" />
            </td>
            <td>{emails.get(createdBy) ?? createdBy}</td>
            <td>{lastUsedAt === null ? "never" : <Time at={lastUsedAt} as="ago" />}</td>
            <td className="number">
              {revokedAt === null && (
                <Button
                  aria-label={`Revoke ${name}`}
                  onClick={() =>
                    ask({
                      title: `Revoke the deploy key "${name}"?`,
                      text: "Deploys with it are refused from now on. What it deployed stays.",
                      button: "Revoke key",
                      done: "The key is revoked.",
                      run: () => revoke({ keyId }),
                    })}
                >
                  Revoke
                </Button>
              )}
            </td>
          </tr>
        )}
      />
      {making && <NewKey onClose={() => setMaking(false)} />}
      {dialog}
    </>
  );
}

function NewKey({ onClose }: { readonly onClose: () => void }) {
  const create = useAction(api.deployKeys.create);
  const [key, setKey] = useState<string | null>(null);
  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name"));
    await attempt(async () => setKey((await create({ name })).key));
  }
  if (key !== null) {
    return (
      <Dialog
        open
        title="The new deploy key"
        text="Copy it now: it is kept nowhere and cannot be shown again."
        onClose={onClose}
        foot={
          <>
            <Button
              onClick={() => void attempt(() => navigator.clipboard.writeText(key), "The key is copied.")}
            >
              Copy
            </Button>
            <Button tone="accent" onClick={onClose}>Done</Button>
          </>
        }
      >
        <TextField
          label="Deploy key"
          value={key}
          readOnly
          onFocus={(event) => event.currentTarget.select()}
        />
        <p className="quiet">
          Give it to the command as <code>SYNCLINE_DEPLOY_KEY</code>.
        </p>
      </Dialog>
    );
  }
  return (
    <Dialog
      open
      title="New deploy key"
      text="It may deploy and roll back, and nothing else."
      onClose={onClose}
      foot={<Button type="submit" form="new-key" tone="accent">Make the key</Button>}
    >
      <form id="new-key" className="stack" onSubmit={(event) => void submit(event)}>
        <TextField label="Name" name="name" required autoFocus hint="Where it will be used, such as CI." />
      </form>
    </Dialog>
  );
}
