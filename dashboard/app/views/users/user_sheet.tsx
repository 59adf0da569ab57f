/** Details of a user: profile, sessions and actions. */
import { type FormEvent, useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { href } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { useConfirm } from "../../ui/confirm.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { CheckField, TextField } from "../../ui/field.tsx";
import { Menu } from "../../ui/menu.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { Time } from "../../ui/format.tsx";
import { Card, Empty, Loading } from "../../ui/view.tsx";
import { signInAs } from "./sign_in_as.ts";

export function UserSheet({ userId, onClose }: { readonly userId: string; readonly onClose: () => void }) {
  const user = useQuery(api.users.get, { userId });
  const edit = useMutation(api.users.edit);
  const endSession = useMutation(api.users.endSession);
  const endAll = useMutation(api.users.endSessions);
  const sendReset = useAction(api.users.sendReset);
  const remove = useAction(api.users.remove);
  const { ask, dialog } = useConfirm();
  const [settingPassword, setSettingPassword] = useState(false);

  async function save(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim() || null;
    await attempt(
      () =>
        edit({
          userId,
          email: text("email"),
          name: text("name"),
          emailVerified: form.get("verified") !== null,
        }),
      "Saved.",
    );
  }

  return (
    <Dialog
      open
      form="side"
      title={user?.name ?? user?.email ?? "User"}
      onClose={onClose}
      footer={user && (
        <>
          <Menu
            label="More about this user"
            items={[
              { text: "Set a password", run: () => setSettingPassword(true) },
              {
                text: "Send a password reset mail",
                disabled: user.email === null,
                run: () => void attempt(() => sendReset({ userId }), "Mail sent."),
              },
              {
                text: "Delete user",
                tone: "bad",
                run: () =>
                  ask({
                    title: "Delete this user?",
                    text:
                      "Ends all sessions of the user and deletes the data that the app's schema ties to the user.",
                    button: "Delete user",
                    done: "User deleted.",
                    run: async () => {
                      await remove({ userId });
                      onClose();
                    },
                  }),
              },
            ]}
          />
          <span className="grow" />
          <Button onClick={() => void attempt(() => signInAs(userId, user.email ?? user.name ?? userId))}>
            Sign in as
          </Button>
          <Button type="submit" form="user" tone="accent">Save</Button>
        </>
      )}
    >
      {user === undefined && <Loading />}
      {user === null && <Empty title="User not found" />}
      {user && (
        <>
          <form id="user" className="stack" key={userId} onSubmit={(event) => void save(event)}>
            <TextField label="Email address" name="email" type="email" defaultValue={user.email ?? ""} />
            <TextField label="Name" name="name" defaultValue={user.name ?? ""} />
            <CheckField
              label="Email verified"
              name="verified"
              defaultChecked={user.emailVerified}
            />
          </form>
          <dl className="facts">
            <dt>ID</dt>
            <dd className="mono">{user.userId}</dd>
            <dt>Created</dt>
            <dd>
              <Time at={user.createdAt} />
            </dd>
            <dt>Password</dt>
            <dd>{user.hasPassword ? "set" : "none"}</dd>
            <dt>Runs</dt>
            <dd>
              <a href={href(["logs"], { caller: `user:${userId}` })}>All</a>,{" "}
              <a href={href(["logs"], { caller: `user:${userId}`, outcome: "error" })}>Failed</a>
            </dd>
          </dl>
          <Card
            flush
            title="Sessions"
            actions={user.list.length > 0 && (
              <Button
                tone="bad"
                onClick={() =>
                  void attempt(async () => showToast(`${await endAll({ userId })} sessions ended.`))}
              >
                End all
              </Button>
            )}
          >
            {user.list.length === 0 && <Empty title="No sessions" />}
            <table className="table">
              <tbody>
                {user.list.map((session) => (
                  <tr key={session.sessionId}>
                    <td title={session.userAgent ?? undefined}>
                      {session.userAgent ?? "Unknown device"}{" "}
                      {session.impersonatedBy !== null && <Badge tone="accent">impersonation</Badge>}
                    </td>
                    <td>
                      <Time at={session.createdAt} as="ago" />
                    </td>
                    <td className="number">
                      <Button
                        onClick={() =>
                          void attempt(
                            () => endSession({ sessionId: session.sessionId }),
                            "Session ended.",
                          )}
                      >
                        End
                      </Button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Card>
        </>
      )}
      {settingPassword && <SetPassword userId={userId} onClose={() => setSettingPassword(false)} />}
      {dialog}
    </Dialog>
  );
}

function SetPassword({ userId, onClose }: { readonly userId: string; readonly onClose: () => void }) {
  const setPassword = useAction(api.users.setPassword);
  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const password = String(new FormData(event.currentTarget).get("password"));
    if (await attempt(() => setPassword({ userId, password }), "Password set.")) onClose();
  }
  return (
    <Dialog
      open
      title="Set a password"
      text="Ends all sessions of the user."
      onClose={onClose}
      footer={<Button type="submit" form="set-password" tone="accent">Set password</Button>}
    >
      <form id="set-password" onSubmit={(event) => void submit(event)}>
        <TextField
          label="New password"
          name="password"
          type="password"
          autoComplete="new-password"
          minLength={8}
          maxLength={256}
          required
          autoFocus
        />
      </form>
    </Dialog>
  );
}
