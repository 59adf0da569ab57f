/** Administrators of this server, and one's own password. */
import { type FormEvent, useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { go, useOpenedBy } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { useConfirm } from "../../ui/confirm.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { TextField } from "../../ui/field.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Menu } from "../../ui/menu.tsx";
import { attempt } from "../../ui/notes.tsx";
import { TableCard } from "../../ui/table.tsx";
import { Time } from "../../ui/texts.tsx";
import { View } from "../../ui/view.tsx";

export function Administrators() {
  const list = useQuery(api.administrators.list);
  const remove = useMutation(api.administrators.remove);
  const endSessions = useMutation(api.administrators.endSessions);
  const { ask, dialog } = useConfirm();
  const [creating, setCreating] = useOpenedBy("administrators");
  const [changing, setChanging] = useState(false);
  return (
    <View
      title="Administrators"
      text="Who may see and change everything here."
      actions={
        <>
          <Button onClick={() => setChanging(true)}>Change my password</Button>
          <Button tone="accent" onClick={() => setCreating(true)}>
            <Icon name="plus" /> New administrator
          </Button>
        </>
      }
    >
      <TableCard
        none={{ title: "There is no administrator" }}
        head={["Address", { number: "Sessions" }, "Created"]}
        actions
        rows={list}
        row={({ adminId, email, createdAt, sessions, you }) => (
          <tr key={adminId}>
            <td>
              {email} {you && <Badge tone="accent">you</Badge>}
            </td>
            <td className="number">{sessions}</td>
            <td>
              <Time at={createdAt} as="ago" />
            </td>
            <td className="number">
              <Menu
                label={`More about ${email}`}
                items={[
                  {
                    text: you ? "End my other sessions" : "End sessions",
                    run: () => void attempt(() => endSessions({ adminId }), "The sessions have ended."),
                  },
                  { text: "What they did", run: () => go(["audit"], { admin: adminId }) },
                  {
                    text: "Remove",
                    tone: "bad",
                    run: () =>
                      ask({
                        title: `Remove ${email}?`,
                        text: "Their sessions end at once.",
                        button: "Remove administrator",
                        done: "The administrator is removed.",
                        run: () => remove({ adminId }),
                      }),
                  },
                ]}
              />
            </td>
          </tr>
        )}
      />
      {creating && <Create onClose={() => setCreating(false)} />}
      {changing && <ChangePassword onClose={() => setChanging(false)} />}
      {dialog}
    </View>
  );
}

function Create({ onClose }: { readonly onClose: () => void }) {
  const create = useAction(api.administrators.create);
  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const account = { email: String(form.get("email")), password: String(form.get("password")) };
    if (await attempt(() => create(account), "The administrator can sign in now.")) onClose();
  }
  return (
    <Dialog
      open
      title="New administrator"
      onClose={onClose}
      foot={<Button type="submit" form="new-admin" tone="accent">Create administrator</Button>}
    >
      <form id="new-admin" className="stack" onSubmit={(event) => void submit(event)}>
        <TextField label="Email address" name="email" type="email" required autoFocus />
        <TextField
          label="Password"
          name="password"
          type="password"
          autoComplete="new-password"
          minLength={8}
          maxLength={256}
          required
          hint="Tell it to them; they can change it here."
        />
      </form>
    </Dialog>
  );
}

function ChangePassword({ onClose }: { readonly onClose: () => void }) {
  const change = useAction(api.administrators.changePassword);
  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const passwords = {
      currentPassword: String(form.get("current")),
      newPassword: String(form.get("new")),
    };
    if (await attempt(() => change(passwords), "Your password is changed.")) onClose();
  }
  return (
    <Dialog
      open
      title="Change my password"
      text="Your other sessions end."
      onClose={onClose}
      foot={<Button type="submit" form="own-password" tone="accent">Change password</Button>}
    >
      <form id="own-password" className="stack" onSubmit={(event) => void submit(event)}>
        <TextField
          label="Present password"
          name="current"
          type="password"
          autoComplete="current-password"
          required
        />
        <TextField
          label="New password"
          name="new"
          type="password"
          autoComplete="new-password"
          minLength={8}
          maxLength={256}
          required
        />
      </form>
    </Dialog>
  );
}
