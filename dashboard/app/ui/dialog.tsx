/** A modal dialog: centered, or a sheet at the side. */
import { Dialog as Parts } from "radix-ui";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

export interface DialogProps {
  readonly title: string;
  /** One sentence below the title. */
  readonly text?: string;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly children?: ReactNode;
  readonly footer?: ReactNode;
  readonly form?: "middle" | "large" | "side";
}

export function Dialog({ title, text, open, onClose, children, footer, form = "middle" }: DialogProps) {
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
