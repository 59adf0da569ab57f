/** A new key, which is shown once. */
import type { ReactNode } from "react";
import { Button, TextField } from "../../ui/controls.tsx";
import { copyText } from "../../ui/copy_text.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { attempt } from "../../ui/toasts.tsx";

export function ShownKey({ label, value, children, revoke, onClose }: {
  readonly label: string;
  readonly value: string;
  /** How to use it. */
  readonly children: ReactNode;
  /** Revokes the key that this one replaces. */
  readonly revoke?: { readonly text: string; readonly run: () => Promise<void> };
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
          {revoke && <Button tone="bad" onClick={() => void attempt(revoke.run)}>Revoke the old key</Button>}
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
      {revoke && <p className="quiet">{revoke.text}</p>}
    </Dialog>
  );
}
