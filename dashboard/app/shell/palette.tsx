/** The command palette: everything there is to go to and to do, by a few letters. */
import "../first_view.ts";
import { Command } from "cmdk";
import { Dialog } from "radix-ui";
import { api } from "../server/api.ts";
import { adminSession } from "../server/admin_session.ts";
import { Icon } from "../ui/icon.tsx";
import { useQuery } from "syncline/react";
import { go } from "./route.ts";
import { toggleTheme } from "./theme.ts";
import { views } from "./views.ts";

export function Palette({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  return (
    <Dialog.Root open={open} onOpenChange={(now) => now || onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="overlay" />
        <Dialog.Content className="dialog palette" aria-describedby={undefined}>
          <Dialog.Title className="sr-only">Go to or do</Dialog.Title>
          <Entries done={onClose} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Entries({ done }: { readonly done: () => void }) {
  const tables = useQuery(api.data.tables) ?? [];
  const functions = useQuery(api.functions.list) ?? [];
  const act = (run: () => void) => () => {
    done();
    run();
  };
  return (
    <Command label="Go to or do">
      <Command.Input placeholder="Go to a table, a function, a view…" autoFocus />
      <Command.List>
        <Command.Empty>Nothing has this name.</Command.Empty>
        <Command.Group heading="Views">
          {views.map(({ name, title, icon, words }) => (
            <Command.Item
              key={name}
              keywords={words.split(" ")}
              onSelect={act(() => go([name]))}
            >
              <Icon name={icon} /> {title}
            </Command.Item>
          ))}
        </Command.Group>
        <Command.Group heading="Tables">
          {tables.map(({ name }) => (
            <Command.Item
              key={name}
              value={`table ${name}`}
              onSelect={act(() => go(["data", name]))}
            >
              <Icon name="data" /> {name}
            </Command.Item>
          ))}
        </Command.Group>
        <Command.Group heading="Functions">
          {functions.map(({ path }) => (
            <Command.Item
              key={path}
              value={`function ${path}`}
              onSelect={act(() => go(["functions", path]))}
            >
              <Icon name="functions" /> {path}
            </Command.Item>
          ))}
        </Command.Group>
        <Command.Group heading="Do">
          <Command.Item onSelect={act(toggleTheme)}>
            <Icon name="theme" /> Change between light and dark
          </Command.Item>
          <Command.Item onSelect={act(() => void adminSession.signOut())}>
            <Icon name="out" /> Sign out
          </Command.Item>
        </Command.Group>
      </Command.List>
    </Command>
  );
}
