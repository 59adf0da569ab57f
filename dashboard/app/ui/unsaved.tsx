/** Protection of unsaved edits: a question before they are lost, and the key that saves them. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import { answerHeldRoute, holdRoute, useHeldRoute } from "../shell/route.ts";
import { Button } from "./controls.tsx";
import { Dialog } from "./dialog.tsx";

/**
 * Asks before the user leaves a form with unsaved edits, or the page. Render the result, which is the question.
 *
 * @param path Beginning of the paths that keep the form open. Read when `dirty` changes.
 */
export function useUnsaved(dirty: boolean, path: readonly string[]): ReactNode {
  const [key] = useState(() => Symbol());
  useEffect(() => dirty ? holdRoute(key, path) : undefined, [dirty, key]);
  if (!useHeldRoute(key)) return null;
  return <DiscardPrompt onDiscard={() => answerHeldRoute(true)} onKeep={() => answerHeldRoute(false)} />;
}

/** Saves with Ctrl+S or ⌘S. @param save `null` if there is nothing to save. */
export function useSaveKey(save: (() => void) | null): void {
  const latest = useRef(save);
  latest.current = save;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!(event.metaKey || event.ctrlKey) || event.key.toLowerCase() !== "s") return;
      event.preventDefault();
      latest.current?.();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

export function DiscardPrompt(
  { onDiscard, onKeep }: { readonly onDiscard: () => void; readonly onKeep: () => void },
) {
  return (
    <Dialog
      open
      title="Discard unsaved changes?"
      text="They have not been stored."
      onClose={onKeep}
      footer={
        <>
          <Button autoFocus onClick={onKeep}>Keep editing</Button>
          <Button tone="bad" onClick={onDiscard}>Discard changes</Button>
        </>
      }
    />
  );
}
