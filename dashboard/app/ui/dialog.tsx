/**
 * Modal dialogs: centered, as a sheet at the side, or to confirm an action that cannot be undone. Also the question before
 * unsaved edits are lost, which dialogs with edited forms ask by themselves.
 */
import { Dialog as Parts } from "radix-ui";
import type { AdminRole } from "../../../mod/functions/admin_roles.ts";
import { type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { answerHeldRoute, currentRoute, holdRoute, useHeldRoute } from "../shell/route.ts";
import { Button, Icon } from "./controls.tsx";
import { focusedElement, restoreFocus } from "./focus.ts";
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
  /** Whether there are unsaved edits other than in fields of a form, which are detected. */
  readonly unsaved?: boolean;
  /** Selector of the element that gets the focus afterwards. Default: the one that had it before, or the view. */
  readonly focusAfter?: string;
}

export function Dialog(
  { title, text, open, onClose, children, footer, form = "middle", unsaved = false, focusAfter }: DialogProps,
) {
  const content = useRef<HTMLDivElement>(null);
  /** Element that had the focus when the dialog opened. */
  const openedFrom = useMemo(() => open ? focusedElement() : null, [open]);
  const [edited, setEdited] = useState(false);
  const [closing, setClosing] = useState(false);
  const check = () => setEdited(hasEdits(content.current));
  // Stored values may have changed.
  useEffect(check);
  const leavePrompt = useUnsaved(open && (unsaved || edited), currentRoute().path);
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
    <Parts.Root
      open={open}
      onOpenChange={(now) => now || (unsaved || edited ? setClosing(true) : onClose())}
    >
      <Parts.Portal>
        <Parts.Overlay className="overlay" />
        <Parts.Content
          ref={content}
          onInput={check}
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
            event.preventDefault();
            const target = focusAfter === undefined ? null : document.querySelector(focusAfter);
            restoreFocus(target, openedFrom);
          }}
          {...(text ? {} : { "aria-describedby": undefined })}
        >
          {head}
          <div className="dialog-body">{children}</div>
          {footer && <div className="dialog-foot">{footer}</div>}
          {leavePrompt}
          {closing && <DiscardPrompt onDiscard={onClose} onKeep={() => setClosing(false)} />}
        </Parts.Content>
      </Parts.Portal>
    </Parts.Root>
  );
}

/** Closes its dialog. Asks first if there are unsaved edits, like Escape; a button that calls `onClose` does not ask. */
export function CancelButton() {
  return (
    <Parts.Close asChild>
      <Button>Cancel</Button>
    </Parts.Close>
  );
}

/** A centered dialog with one form, which its button submits. */
export function FormDialog({ button, needs, onSubmit, children, ...dialog }:
  & Pick<DialogProps, "title" | "text" | "onClose" | "children">
  & {
    readonly button: string;
    /** Role without which the button is disabled. */
    readonly needs?: AdminRole;
    readonly onSubmit: (form: FormData) => Promise<void>;
  }) {
  const id = useId();
  return (
    <Dialog
      open
      {...dialog}
      footer={
        <>
          <CancelButton />
          <Button type="submit" form={id} tone="accent" needs={needs}>{button}</Button>
        </>
      }
    >
      <form
        id={id}
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void onSubmit(new FormData(event.currentTarget));
        }}
      >
        {children}
      </form>
    </Dialog>
  );
}

/** Whether a field of a form differs from its initial value. Passwords, codes and files are quickly entered again. */
function hasEdits(content: Element | null): boolean {
  const fields = content?.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>(
    "form :is(input, textarea)",
  );
  return [...fields ?? []].some((field) =>
    field.type === "checkbox"
      ? (field as HTMLInputElement).checked !== (field as HTMLInputElement).defaultChecked
      : field.type !== "password" && field.type !== "file" && field.autocomplete !== "one-time-code" &&
        field.value !== field.defaultValue
  );
}

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

function DiscardPrompt(
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

export interface Confirmation {
  readonly title: string;
  readonly text: string;
  readonly button: string;
  /** Role without which the button is disabled. */
  readonly needs?: AdminRole;
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
          <Button tone="bad" needs={question.needs} busy={busy} onClick={() => void run(question)}>
            {question.button}
          </Button>
        </>
      }
    />
  );
  return { dialog, ask: setQuestion };
}
