/** A mail as it would be sent, with made-up values: with the text that is entered, or the one that counts. */
import { useEffect, useState } from "react";
import { useAction } from "syncline/react";
import { api, type MailKind } from "../../server/api.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Loading } from "../../ui/view.tsx";

/** Settings that hold the text of a mail. */
const KINDS: Readonly<Record<string, MailKind>> = {
  mailVerify: "verify",
  mailReset: "reset",
  mailMagic: "magic",
  mailChange: "change",
};

/** The mail whose text a setting holds; `null` for other settings. */
export const mailOf = (setting: string): MailKind | null => KINDS[setting] ?? null;

interface Mail {
  readonly subject: string;
  readonly text: string;
}

export function PreviewMail({ kind, text, onClose }: {
  readonly kind: MailKind;
  /** What is entered and not stored yet. */
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
      text="With made-up values."
      onClose={onClose}
    >
      {mail === null && error === null && <Loading />}
      {mail !== null && <pre className="result">{mail.text}</pre>}
      {error !== null && <p className="field-error" role="alert">{error}</p>}
    </Dialog>
  );
}
