/** A dropdown menu. */
import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { Button, Icon } from "./controls.tsx";

export interface MenuItem {
  readonly text: string;
  readonly tone?: "bad";
  readonly disabled?: boolean;
  readonly run: () => void;
}

export function Menu(
  { label, items, trigger }: {
    readonly label: string;
    readonly items: readonly MenuItem[];
    /** Content of the button. Default: three dots. */
    readonly trigger?: ReactNode;
  },
) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>
        <Button {...trigger === undefined && { tone: "plain" }} aria-label={label}>
          {trigger ?? <Icon name="more" />}
        </Button>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className="menu" align="end" sideOffset={4}>
          {items.map(({ text, tone, disabled, run }) => (
            <DropdownMenu.Item
              key={text}
              className="menu-item"
              data-tone={tone}
              disabled={disabled ?? false}
              onSelect={run}
            >
              {text}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
