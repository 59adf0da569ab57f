/** A new key, which is shown once, and the revocation of the key that it replaces. */
import { type ReactNode, useState } from "react";
import { Button, TextField } from "../../ui/controls.tsx";
import { copyText } from "../../ui/copy_text.ts";
import { Dialog, useConfirm } from "../../ui/dialog.tsx";

export function ShownKey({ label, value, children, revoke, onClose }: {
  readonly label: string;
  readonly value: string;
  /** How to use it. */
  readonly children: ReactNode;
  /** Revokes the key that this one replaces. Optional. */
  readonly revoke?: { readonly name: string; readonly run: () => Promise<unknown> };
  readonly onClose: () => void;
}) {
  return (
    <Dialog
      open
      title={`New ${label}`}
      text="Copy the key now. It is not stored and cannot be shown again."
      onClose={onClose}
      footer={
        <>
          <Button onClick={() => void copyText(value, "Key copied.")}>Copy</Button>
          <Button tone="accent" onClick={onClose}>Done</Button>
        </>
      }
    >
      <TextField
        label={`${label.charAt(0).toUpperCase()}${label.slice(1)}`}
        value={value}
        readOnly
        onFocus={(event) => event.currentTarget.select()}
      />
      <p className="quiet">{children}</p>
      {revoke && <OldKey {...revoke} />}
    </Dialog>
  );
}

function OldKey({ name, run }: { readonly name: string; readonly run: () => Promise<unknown> }) {
  const [revoked, setRevoked] = useState(false);
  const { ask, dialog } = useConfirm();
  return (
    <div className="stack" role="status">
      {revoked ? <p>The old key is revoked. Only this one works.</p> : (
        <>
          <p className="quiet">Store it where {name} is used, then revoke the old key, which still works.</p>
          <div className="row">
            <Button
              tone="bad"
              onClick={() =>
                ask({
                  title: `Revoke the old key of ${name}?`,
                  text: "It stops working at once. Have you copied the new key?",
                  button: "Revoke key",
                  run: async () => {
                    await run();
                    setRevoked(true);
                  },
                })}
            >
              Revoke the old key…
            </Button>
          </div>
        </>
      )}
      {dialog}
    </div>
  );
}
