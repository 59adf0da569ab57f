/** The passkeys of the signed-in administrator: added, renamed, removed. */
import { useState } from "react";
import { ownFactors, type OwnPasskey, ownPasskeys } from "syncline/accounts";
import { useMutation, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { Badge, Button, TextField } from "../../ui/controls.tsx";
import { Dialog, FormDialog, useConfirm } from "../../ui/dialog.tsx";
import { Time } from "../../ui/format.tsx";
import { useIdentityProof } from "../../ui/identity_proof.tsx";
import { usePasskeyActions, usePasskeySupport } from "../../ui/passkeys.ts";
import { attempt } from "../../ui/toasts.tsx";
import { Loading, Table } from "../../ui/view.tsx";

export function Passkeys({ onClose }: { readonly onClose: () => void }) {
  const passkeys = useQuery(ownPasskeys);
  const { removePasskey } = usePasskeyActions();
  const supported = usePasskeySupport();
  const { confirmed, proofDialog } = useIdentityProof();
  const { ask, dialog } = useConfirm();
  const [adding, setAdding] = useState(false);
  const [renaming, setRenaming] = useState<OwnPasskey | null>(null);
  return (
    <Dialog
      open
      title="My passkeys"
      text="Sign in with the fingerprint, face or PIN of a device. A passkey counts as a second factor."
      onClose={onClose}
      footer={
        <Button tone="accent" disabled={!supported} onClick={() => setAdding(true)}>Add passkey</Button>
      }
    >
      {!passkeys && <Loading />}
      {passkeys?.length === 0 && <p className="quiet">You have no passkeys.</p>}
      {!supported && <p className="quiet">This browser does not support passkeys.</p>}
      {passkeys && passkeys.length > 0 && (
        <Table head={["Name", "Used"]} actions>
          {passkeys.map((passkey) => (
            <tr key={passkey.passkeyId}>
              <td>
                {passkey.name} {passkey.backedUp && <Badge>backed up</Badge>}
              </td>
              <td>
                {passkey.lastUsedAt === null ? "never used, added " : "last used "}
                <Time at={passkey.lastUsedAt ?? passkey.createdAt} as="ago" />
              </td>
              <td className="number">
                <Button aria-label={`Rename ${passkey.name}`} onClick={() => setRenaming(passkey)}>
                  Rename
                </Button>{" "}
                <Button
                  aria-label={`Remove ${passkey.name}`}
                  onClick={() =>
                    ask({
                      title: `Remove the passkey ${passkey.name}?`,
                      text: "It can no longer sign in. The device keeps its copy, which does not work.",
                      button: "Remove passkey",
                      done: "Passkey removed.",
                      run: () => confirmed(() => removePasskey(passkey.passkeyId)),
                    })}
                >
                  Remove
                </Button>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {adding && <AddPasskey isFirst={passkeys?.length === 0} onClose={() => setAdding(false)} />}
      {renaming && <RenamePasskey passkey={renaming} onClose={() => setRenaming(null)} />}
      {dialog}
      {proofDialog}
    </Dialog>
  );
}

function AddPasskey({ isFirst, onClose }: { readonly isFirst: boolean; readonly onClose: () => void }) {
  const { addPasskey } = usePasskeyActions();
  const factors = useQuery(ownFactors);
  const { confirmed, proofDialog } = useIdentityProof();
  // Administrators with a factor prove it instead.
  const needsPassword = isFirst && factors?.totp === null;
  async function submit(form: FormData): Promise<void> {
    const password = form.get("password");
    const passkey = {
      name: String(form.get("name")),
      ...(password !== null && { password: String(password) }),
    };
    if (await attempt(() => confirmed(() => addPasskey(passkey)), "Passkey added.")) onClose();
  }
  return (
    <>
      <FormDialog title="Add passkey" button="Continue" onSubmit={submit} onClose={onClose}>
        <TextField
          label="Name"
          name="name"
          maxLength={60}
          required
          autoFocus
          hint="To recognize the device, such as Laptop or Security key."
        />
        {needsPassword && (
          <TextField
            label="Your password"
            name="password"
            type="password"
            autoComplete="current-password"
            required
          />
        )}
      </FormDialog>
      {proofDialog}
    </>
  );
}

function RenamePasskey({ passkey, onClose }: { readonly passkey: OwnPasskey; readonly onClose: () => void }) {
  const rename = useMutation(api.administrators.renamePasskey);
  const { passkeyId } = passkey;
  const submit = async (form: FormData) => {
    if (await attempt(() => rename({ passkeyId, name: String(form.get("name")) }), "Passkey renamed.")) {
      onClose();
    }
  };
  return (
    <FormDialog title="Rename passkey" button="Save" onSubmit={submit} onClose={onClose}>
      <TextField label="Name" name="name" defaultValue={passkey.name} maxLength={60} required autoFocus />
    </FormDialog>
  );
}
