/** Details of a user: profile, sessions and actions. */
import { type FormEvent, useState } from "react";
import type { OwnPasskey } from "syncline/accounts";
import { useAction, useMutation, useQuery } from "syncline/react";
import { beginFlow } from "../../../../mod/client/accounts/flows.ts";
import { adminSession } from "../../server/admin_session.ts";
import { api } from "../../server/api.ts";
import { href } from "../../shell/route.ts";
import { Badge, Button, CheckField, TextField } from "../../ui/controls.tsx";
import { Dialog, FormDialog, useConfirm } from "../../ui/dialog.tsx";
import { Time } from "../../ui/format.tsx";
import { Menu } from "../../ui/menu.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { useIdentityProof } from "../../ui/identity_proof.tsx";
import { Card, Empty, Loading } from "../../ui/view.tsx";

interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly expiresIn: number;
  readonly userId: string;
}

/** `name` is shown in the banner. The tokens are passed in the fragment, which is not sent to servers. */
async function signInAs(userId: string, name: string): Promise<void> {
  const response = await adminSession.fetch("/api/admin/impersonate", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ userId }),
  });
  const tokens = await response.json() as Tokens;
  const fragment = new URLSearchParams({
    as: name,
    svc_access_token: tokens.accessToken,
    svc_refresh_token: tokens.refreshToken,
    svc_expires_in: String(tokens.expiresIn),
    svc_user_id: tokens.userId,
    // Proves to the new window that this dashboard opened it.
    svc_state: beginFlow(Date.now()) ?? "",
  });
  open(`./as.html#${fragment}`, "_blank", "noopener");
}

export function UserSheet({ userId, onClose }: { readonly userId: string; readonly onClose: () => void }) {
  const user = useQuery(api.users.get, { userId });
  const edit = useMutation(api.users.edit);
  const endSession = useMutation(api.users.endSession);
  const endAll = useMutation(api.users.endSessions);
  const removeFactors = useAction(api.users.removeFactors);
  const sendReset = useAction(api.users.sendReset);
  const remove = useAction(api.users.remove);
  const { ask, dialog } = useConfirm();
  const { confirmed, proofDialog } = useIdentityProof();
  const [settingPassword, setSettingPassword] = useState(false);
  /** Number of saves. Each loads the stored values into the form. */
  const [saves, setSaves] = useState(0);

  async function save(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim() || null;
    const saved = await attempt(
      () =>
        edit({
          userId,
          email: text("email"),
          name: text("name"),
          emailVerified: form.get("verified") !== null,
        }),
      "Saved.",
    );
    if (saved) setSaves((before) => before + 1);
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
                text: "Remove second factor",
                disabled: !user.secondFactor && user.passkeys.length === 0,
                run: () =>
                  ask({
                    title: "Remove the second factor?",
                    text: "Removes the authenticator app, the recovery codes and all passkeys.",
                    button: "Remove second factor",
                    done: "Second factor removed.",
                    run: () => confirmed(() => removeFactors({ userId })),
                  }),
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
          <form id="user" className="stack" key={`${userId} ${saves}`} onSubmit={(event) => void save(event)}>
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
            <dt>Second factor</dt>
            <dd>{user.secondFactor ? "authenticator app" : "none"}</dd>
            <dt>Runs</dt>
            <dd>
              <a href={href(["logs"], { caller: `user:${userId}` })}>All</a>,{" "}
              <a href={href(["logs"], { caller: `user:${userId}`, outcome: "error" })}>Failed</a>
            </dd>
          </dl>
          <Passkeys userId={userId} passkeys={user.passkeys} />
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
      {proofDialog}
    </Dialog>
  );
}

function Passkeys({ userId, passkeys }: {
  readonly userId: string;
  readonly passkeys: readonly OwnPasskey[];
}) {
  const remove = useAction(api.users.removePasskey);
  const { ask, dialog } = useConfirm();
  const { confirmed, proofDialog } = useIdentityProof();
  if (passkeys.length === 0) return null;
  return (
    <Card flush title="Passkeys">
      <table className="table">
        <tbody>
          {passkeys.map(({ passkeyId, name, createdAt, lastUsedAt, backedUp }) => (
            <tr key={passkeyId}>
              <td>
                {name} {backedUp && <Badge>backed up</Badge>}
              </td>
              <td>
                {lastUsedAt === null ? "never used, added " : "last used "}
                <Time at={lastUsedAt ?? createdAt} as="ago" />
              </td>
              <td className="number">
                <Button
                  aria-label={`Remove ${name}`}
                  onClick={() =>
                    ask({
                      title: `Remove the passkey ${name}?`,
                      text: "It can no longer sign in. Sessions that it opened stay: end them below.",
                      button: "Remove passkey",
                      done: "Passkey removed.",
                      run: () => confirmed(() => remove({ userId, passkeyId })),
                    })}
                >
                  Remove
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {dialog}
      {proofDialog}
    </Card>
  );
}

function SetPassword({ userId, onClose }: { readonly userId: string; readonly onClose: () => void }) {
  const setPassword = useAction(api.users.setPassword);
  async function submit(form: FormData): Promise<void> {
    const password = String(form.get("password"));
    if (await attempt(() => setPassword({ userId, password }), "Password set.")) onClose();
  }
  return (
    <FormDialog
      title="Set a password"
      text="Ends all sessions of the user."
      button="Set password"
      onSubmit={submit}
      onClose={onClose}
    >
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
    </FormDialog>
  );
}
