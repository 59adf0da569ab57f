/** Asks before something is done that cannot be taken back. */
import { useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { attempt } from "./notes.tsx";

export interface Question {
  readonly title: string;
  readonly text: string;
  /** What the button says. */
  readonly button: string;
  readonly run: () => Promise<unknown>;
  /** What is told afterwards, unless `run` tells it. */
  readonly done?: string;
}

/** Gives what shows the question, and what asks it. */
export function useConfirm() {
  const [question, setQuestion] = useState<Question | null>(null);
  const [busy, setBusy] = useState(false);
  async function run({ run: work, done }: Question): Promise<void> {
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
      foot={
        <>
          <Button onClick={() => setQuestion(null)}>Cancel</Button>
          <Button tone="bad" disabled={busy} onClick={() => void run(question)}>{question.button}</Button>
        </>
      }
    />
  );
  return { dialog, ask: setQuestion };
}
