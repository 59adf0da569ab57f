/** A dropdown menu. */
import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import type { AdminRole } from "../../../mod/functions/admin_roles.ts";
import { useRefusal } from "./access.tsx";
import { Button, Icon } from "./controls.tsx";

export interface MenuItem {
  readonly text: string;
  readonly tone?: "bad";
  readonly disabled?: boolean;
  /** Role without which the item is disabled. */
  readonly needs?: AdminRole;
  readonly run: () => void;
}

export function Menu(
  { label, items, trigger, align = "end" }: {
    readonly label: string;
    readonly items: readonly MenuItem[];
    /** Content of the button. Default: three dots. */
    readonly trigger?: ReactNode;
    /** Edge of the button that the menu is aligned with. */
    readonly align?: "start" | "end";
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
        <DropdownMenu.Content className="menu" align={align} sideOffset={4} collisionPadding={8}>
          {items.map((item) => <Item key={item.text} {...item} />)}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

function Item({ text, tone, disabled = false, needs, run }: MenuItem) {
  const refusal = useRefusal(needs);
  return (
    <DropdownMenu.Item
      className="menu-item"
      data-tone={tone}
      disabled={refusal !== undefined || disabled}
      title={refusal}
      onSelect={run}
    >
      {text}
    </DropdownMenu.Item>
  );
}
