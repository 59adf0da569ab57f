/** What asks for a decision in front of a view: a dialog in the middle, or a sheet at the side. */
import { Dialog as Parts } from "radix-ui";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

export interface DialogProps {
  readonly title: string;
  /** One sentence under the title. */
  readonly text?: string;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly children?: ReactNode;
  /** The buttons. */
  readonly foot?: ReactNode;
  readonly form?: "middle" | "large" | "side";
}

export function Dialog({ title, text, open, onClose, children, foot, form = "middle" }: DialogProps) {
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
    <Parts.Root open={open} onOpenChange={(now) => now || onClose()}>
      <Parts.Portal>
        <Parts.Overlay className="overlay" />
        <Parts.Content
          className={form === "side" ? "sheet" : "dialog"}
          data-size={form}
          // Messages stand in front of dialogs and can be answered from there.
          onInteractOutside={(event) => {
            const { target } = event.detail.originalEvent;
            if (!(target instanceof Element)) return;
            // One that was closed by being pressed is gone by now.
            if (!target.isConnected || target.closest(".notes") !== null) event.preventDefault();
          }}
          // Not the button that closes it, unless a field has asked for the focus.
          onOpenAutoFocus={(event) => {
            const content = event.currentTarget;
            if (!(content instanceof HTMLElement) || content.contains(document.activeElement)) return;
            event.preventDefault();
            content.focus();
          }}
          {...(text ? {} : { "aria-describedby": undefined })}
        >
          {head}
          <div className="dialog-body">{children}</div>
          {foot && <div className="dialog-foot">{foot}</div>}
        </Parts.Content>
      </Parts.Portal>
    </Parts.Root>
  );
}
