/** Preview of a mail template with sample values. */
import { useEffect, useState } from "react";
import { useAction } from "syncline/react";
import { api, type MailKind } from "../../server/api.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Loading } from "../../ui/view.tsx";

/** Settings that hold mail templates. */
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
