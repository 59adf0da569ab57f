/** Users: list, search and details. */
import { type FormEvent, useState } from "react";
import { useAction } from "syncline/react";
import { api } from "../../server/api.ts";
import { currentRoute, go, href, replace, useRoute } from "../../shell/route.ts";
import { useCreateDialog } from "../../ui/create_dialog.ts";
import { Badge, Button, CheckField, Icon, SearchBar, TextField } from "../../ui/controls.tsx";
import { CancelButton, Dialog } from "../../ui/dialog.tsx";
import { BreakableName, Time } from "../../ui/format.tsx";
import { Card, Empty, Table, View } from "../../ui/view.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { ListEnd, useLiveList } from "../../ui/use_request.tsx";
import { UserSheet } from "./user_sheet.tsx";

export function NewUser({ onClose }: { readonly onClose: () => void }) {
  const create = useAction(api.users.create);
  const [busy, setBusy] = useState(false);
  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    setBusy(true);
    const done = await attempt(async () => {
      const { userId } = await create({
        email: text("email"),
        ...(text("password") !== "" && { password: text("password") }),
        ...(text("name") !== "" && { name: text("name") }),
        emailVerified: form.get("verified") !== null,
      });
      go(["users", userId]);
    }, "User created.");
    setBusy(false);
    if (done) onClose();
  }
  return (
    <Dialog
      open
      title="New user"
      onClose={onClose}
      footer={
        <>
          <CancelButton />
          <Button type="submit" form="new-user" tone="accent" disabled={busy}>Create user</Button>
        </>
      }
    >
      <form id="new-user" className="stack" onSubmit={(event) => void submit(event)}>
        <TextField label="Email address" name="email" type="email" required autoFocus />
        <TextField label="Name" name="name" />
        <TextField
          label="Password"
          name="password"
          type="password"
          autoComplete="new-password"
          hint="Leave empty if the user will set one with a reset mail or sign in by mail."
        />
        <CheckField label="Email verified" name="verified" defaultChecked />
      </form>
    </Dialog>
  );
}

const ORDERS = [["newest", "Newest first"], ["oldest", "Oldest first"], ["email", "By email"]] as const;

export function Users() {
  const { path: [, userId], search: params } = useRoute();
  const search = params.get("search") ?? "";
  const order = (params.get("order") ?? "newest") as "newest" | "oldest" | "email";
  const [creating, setCreating] = useCreateDialog(["users"], { needs: "editor" });
  const list = useLiveList(api.users.list, { order, ...(search !== "" && { search }) });
  const here = (changes: Record<string, string | undefined>) =>
    replace(["users"], { search, order, ...changes });
  return (
    <View
      title="Users"
      text="Everyone with an account in this app."
      actions={
        <Button tone="accent" needs="editor" onClick={() => setCreating(true)}>
          <Icon name="plus" /> New user
        </Button>
      }
    >
      <SearchBar
        label="Search users"
        placeholder="Email, name or ID"
        value={search}
        onChange={(search) => here({ search })}
        choices={[{ label: "Order", value: order, onChange: (order) => here({ order }), options: ORDERS }]}
      />
      <Card flush>
        <Table head={["Email", "Name", "Sign-in method", { number: "Sessions" }, "Created"]}>
          {list.results.map((user) => (
            <tr key={user.userId}>
              <td className="args wrap">
                <a href={href(["users", user.userId], { search, order })}>
                  <BreakableName text={user.email ?? user.userId} />
                </a>{" "}
                {!user.emailVerified && user.email !== null && <Badge tone="warn">unverified</Badge>}
              </td>
              <td className="args">{user.name ?? <span className="quiet">–</span>}</td>
              <td>{user.anonymous ? "Anonymous" : user.hasPassword ? "Password" : "Mail or provider"}</td>
              <td className="number">{user.sessions}</td>
              <td>
                <Time at={user.createdAt} as="ago" />
              </td>
            </tr>
          ))}
        </Table>
        {list.results.length === 0 && list.status === "Exhausted" && (
          <Empty title={search === "" ? "No users yet" : "No matching users"} />
        )}
        <ListEnd list={list} />
      </Card>
      {creating && <NewUser onClose={() => setCreating(false)} />}
      {userId !== undefined && (
        <UserSheet
          key={userId}
          userId={userId}
          // The search may have changed while a deletion was awaited.
          onClose={() => go(["users"], Object.fromEntries(currentRoute().search))}
        />
      )}
    </View>
  );
}
