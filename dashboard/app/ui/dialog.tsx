/** Modal dialogs: centered, as a sheet at the side, or to confirm an action that cannot be undone. */
import { Dialog as Parts } from "radix-ui";
import { type ReactNode, useState } from "react";
import { Button, Icon } from "./controls.tsx";
import { attempt } from "./toasts.tsx";

export interface DialogProps {
  readonly title: string;
  /** One sentence below the title. */
  readonly text?: string;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly children?: ReactNode;
  readonly footer?: ReactNode;
  readonly form?: "middle" | "large" | "side";
  /** Called when the user closes the dialog. Return `false` to keep it open. */
  readonly mayClose?: () => boolean;
  /** Selector of the element that gets the focus afterwards. Default: the one that had it before. */
  readonly focusAfter?: string;
}

export function Dialog(
  { title, text, open, onClose, children, footer, form = "middle", mayClose = () => true, focusAfter }:
    DialogProps,
) {
  const head = (
    <div className="dialog-head row">
      <div className="grow">
        <Parts.Title asChild>
          <h1>{title}</h1>
        </Parts.Title>
        {text && (
          <Parts.Description asChild>
            <p className="quiet">{text}</p>
          </Parts.Description>
        )}
      </div>
      <Parts.Close asChild>
        <Button tone="plain" aria-label="Close">
          <Icon name="close" />
        </Button>
      </Parts.Close>
    </div>
  );
  return (
    <Parts.Root open={open} onOpenChange={(now) => now || mayClose() && onClose()}>
      <Parts.Portal>
        <Parts.Overlay className="overlay" />
        <Parts.Content
          className={form === "side" ? "sheet" : "dialog"}
          data-size={form}
          // Toasts appear above dialogs and stay usable.
          onInteractOutside={(event) => {
            const { target } = event.detail.originalEvent;
            if (!(target instanceof Element)) return;
            // A toast that was dismissed by this click is already detached.
            if (!target.isConnected || target.closest(".toasts") !== null) event.preventDefault();
          }}
          // Focus the dialog rather than its close button, unless a field has autofocus.
          onOpenAutoFocus={(event) => {
            const content = event.currentTarget;
            if (!(content instanceof HTMLElement) || content.contains(document.activeElement)) return;
            event.preventDefault();
            content.focus();
          }}
          onCloseAutoFocus={(event) => {
            const target = focusAfter === undefined ? null : document.querySelector(focusAfter);
            if (!(target instanceof HTMLElement) || document.querySelector("[role=dialog]")) return;
            event.preventDefault();
            target.focus();
          }}
          {...(text ? {} : { "aria-describedby": undefined })}
        >
          {head}
          <div className="dialog-body">{children}</div>
          {footer && <div className="dialog-foot">{footer}</div>}
        </Parts.Content>
      </Parts.Portal>
    </Parts.Root>
  );
}

export interface Confirmation {
  readonly title: string;
  readonly text: string;
  readonly button: string;
  readonly run: () => Promise<unknown>;
  /** Message shown on success. Omit if `run` shows one. */
  readonly done?: string;
}

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
          <Button tone="bad" busy={busy} onClick={() => void run(question)}>{question.button}</Button>
        </>
      }
    />
  );
  return { dialog, ask: setQuestion };
}
