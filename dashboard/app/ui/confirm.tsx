/** Confirmation dialog for actions that cannot be undone. */
import { useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { attempt } from "./toasts.tsx";

export interface Confirmation {
  readonly title: string;
  readonly text: string;
  /** Label of the confirm button. */
  readonly button: string;
  readonly run: () => Promise<unknown>;
  /** Message shown on success. Omit if `run` shows one. */
  readonly done?: string;
}

/** Returns the dialog element and a function that opens it. */
export function useConfirm() {
  const [question, setQuestion] = useState<Confirmation | null>(null);
  const [busy, setBusy] = useState(false);
  async function run({ run: work, done }: Confirmation): Promise<void> {
    setBusy(true);
    const succeeded = await attempt(work, done);
    setBusy(false);
    if (succeeded) setQuestion(null);
  }
  const dialog = question && (
    <Dialog
      open
      title={question.title}
      text={question.text}
      onClose={() => setQuestion(null)}
      footer={
        <>
          <Button onClick={() => setQuestion(null)}>Cancel</Button>
          <Button tone="bad" disabled={busy} onClick={() => void run(question)}>{question.button}</Button>
        </>
      }
    />
  );
  return { dialog, ask: setQuestion };
}
