/** Dialog that sends a test mail. */
import { type FormEvent, useState } from "react";
import { useAction, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { TextField } from "../../ui/field.tsx";
import { showToast } from "../../ui/toasts.tsx";

export function TestMail({ onClose }: { readonly onClose: () => void }) {
  const send = useAction(api.settings.testMail);
  const me = useQuery(api.administrators.me);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const to = String(new FormData(event.currentTarget).get("to"));
    setBusy(true);
    setError(null);
    try {
      await send({ to });
      showToast(`The mail server accepted the mail to ${to}.`);
      onClose();
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
      setBusy(false);
    }
  }
  return (
    <Dialog
      open
      title="Send a test mail"
      text="Uses the current mail settings."
      onClose={onClose}
      footer={
        <Button type="submit" form="test-mail" tone="accent" disabled={busy}>
          {busy ? "Sending…" : "Send"}
        </Button>
      }
    >
      <form id="test-mail" onSubmit={(event) => void submit(event)}>
        <TextField
          key={me?.email}
          label="To"
          name="to"
          type="email"
          required
          autoFocus
          defaultValue={me?.email}
          error={error}
        />
      </form>
    </Dialog>
  );
}
