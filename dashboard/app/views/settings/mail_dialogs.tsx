/** Dialogs that preview a mail and send a test mail. */
import { type FormEvent, useEffect, useState } from "react";
import { useAction, useQuery } from "syncline/react";
import { api, type MailKind } from "../../server/api.ts";
import { Button, TextField } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { showToast } from "../../ui/toasts.tsx";
import { Loading } from "../../ui/view.tsx";

const KINDS: Readonly<Record<string, MailKind>> = {
  mailVerify: "verify",
  mailReset: "reset",
  mailMagic: "magic",
  mailChange: "change",
};

/** The mail whose template a setting holds, or `null`. */
export const mailOf = (setting: string): MailKind | null => KINDS[setting] ?? null;

interface Mail {
  readonly subject: string;
  readonly text: string;
}

export function PreviewMail({ kind, text, onClose }: {
  readonly kind: MailKind;
  /** Unsaved template; the active one if undefined. */
  readonly text: string | undefined;
  readonly onClose: () => void;
}) {
  const preview = useAction(api.settings.previewMail);
  const [mail, setMail] = useState<Mail | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    preview({ kind, ...(text !== undefined && text !== "" && { text }) }).then(
      setMail,
      (failure) => setError(failure instanceof Error ? failure.message : String(failure)),
    );
  }, [preview, kind, text]);
  return (
    <Dialog
      open
      form="large"
      title={mail?.subject ?? "Preview"}
      text="With sample values."
      onClose={onClose}
    >
      {mail === null && error === null && <Loading />}
      {mail !== null && <pre className="result">{mail.text}</pre>}
      {error !== null && <p className="field-error" role="alert">{error}</p>}
    </Dialog>
  );
}

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
