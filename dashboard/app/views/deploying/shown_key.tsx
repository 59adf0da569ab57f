/** A new key, which is shown once. */
import type { ReactNode } from "react";
import { Button, TextField } from "../../ui/controls.tsx";
import { copyText } from "../../ui/copy_text.ts";
import { Dialog } from "../../ui/dialog.tsx";

export function ShownKey({ label, value, children, onClose }: {
  readonly label: string;
  readonly value: string;
  /** How to use it. */
  readonly children: ReactNode;
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
    </Dialog>
  );
}
