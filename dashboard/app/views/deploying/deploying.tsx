/** Keys, environment variables and data migrations. */
import { useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { Badge, Button, Icon, TextField } from "../../ui/controls.tsx";
import { FormDialog, useConfirm } from "../../ui/dialog.tsx";
import { Time } from "../../ui/format.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { TableCard, View } from "../../ui/view.tsx";
import { ApiKeys } from "./api_keys.tsx";
import { Migrations } from "./migrations.tsx";
import { ShownKey } from "./shown_key.tsx";
import { Variables } from "./variables.tsx";

/** Deploy keys: created, shown once, revoked. A deploy key grants access to deploys only. */
function DeployKeys() {
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
        titleActions={
          <Button onClick={() => setMaking(true)}>
            <Icon name="plus" /> New deploy key
          </Button>
        }
        empty={{
          title: "No deploy keys",
          text: (
            <>
              A deploy key lets <code>syncline deploy</code>{" "}
              deploy from a laptop or from CI, and grants nothing else.
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
                      text: "Deploys with this key will be rejected. Versions it has deployed stay live.",
                      button: "Revoke key",
                      done: "Key revoked.",
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
  async function submit(form: FormData): Promise<void> {
    const name = String(form.get("name"));
    await attempt(async () => setKey((await create({ name })).key));
  }
  if (key !== null) {
    return (
      <ShownKey label="deploy key" value={key} onClose={onClose}>
        Pass it to the command as <code>SYNCLINE_DEPLOY_KEY</code>.
      </ShownKey>
    );
  }
  return (
    <FormDialog
      title="New deploy key"
      text="It can deploy and roll back, and nothing else."
      button="Create key"
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField label="Name" name="name" required autoFocus hint="Where it will be used, such as CI." />
    </FormDialog>
  );
}

export function Deploying() {
  return (
    <View
      title="Deployment"
      text="Data migrations, environment variables and keys."
    >
      <Migrations />
      <Variables />
      <DeployKeys />
      <ApiKeys />
    </View>
  );
}
