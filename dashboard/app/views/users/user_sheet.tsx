/** Details of a user: profile, sessions and actions. */
import { useState } from "react";
import type { OwnPasskey } from "syncline/accounts";
import { useAction, useMutation, useQuery } from "syncline/react";
import { beginFlow } from "../../../../mod/client/accounts/flows.ts";
import { adminSession } from "../../server/admin_session.ts";
import { api } from "../../server/api.ts";
import { FAILURES } from "../../server/outcomes.ts";
import { href } from "../../shell/route.ts";
import { Badge, Button, CheckField, EditableFields, ReadOnlyNote, TextField } from "../../ui/controls.tsx";
import { Dialog, FormDialog, useConfirm } from "../../ui/dialog.tsx";
import { Time } from "../../ui/format.tsx";
import { Menu } from "../../ui/menu.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { useIdentityProof } from "../../ui/identity_proof.tsx";
import { Card, Empty, Loading, Table } from "../../ui/view.tsx";

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

interface Profile {
  readonly email: string;
  readonly name: string;
  readonly verified: boolean;
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
  /** Unsaved fields. */
  const [edits, setEdits] = useState<Partial<Profile>>({});
  const profile: Profile = {
    ...{ email: user?.email ?? "", name: user?.name ?? "", verified: user?.emailVerified ?? false },
    ...edits,
  };
  const change = (part: Partial<Profile>) => setEdits((before) => ({ ...before, ...part }));

  async function save(): Promise<void> {
    const { email, name, verified } = profile;
    const saved = await attempt(
      () => edit({ userId, email: email.trim() || null, name: name.trim() || null, emailVerified: verified }),
      "Saved.",
    );
    // Fields that were edited in the meantime stay unsaved.
    if (saved) {
      setEdits((before) =>
        Object.fromEntries(
          Object.entries(before).filter(([field, value]) => value !== edits[field as keyof Profile]),
        )
      );
    }
  }

  return (
    <Dialog
      open
      form="side"
      title={user?.name ?? user?.email ?? "User"}
      unsaved={user !== null && Object.keys(edits).length > 0}
      onClose={onClose}
      footer={user && (
        <>
          <Menu
            label="More about this user"
            align="start"
            items={[
              { text: "Set a password", needs: "editor", run: () => setSettingPassword(true) },
              {
                text: "Send a password reset mail",
                needs: "editor",
                disabled: user.email === null,
                run: () => void attempt(() => sendReset({ userId }), "Mail sent."),
              },
              {
                text: "Remove second factor",
                needs: "editor",
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
                needs: "editor",
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
          <Button
            needs="editor"
            onClick={() => void attempt(() => signInAs(userId, user.email ?? user.name ?? userId))}
          >
            Sign in as
          </Button>
          <Button
            type="submit"
            form="user"
            tone="accent"
            needs="editor"
            disabled={Object.keys(edits).length === 0}
          >
            Save
          </Button>
        </>
      )}
    >
      {user === undefined && <Loading />}
      {user === null && <Empty title="User not found" />}
      {user && (
        <>
          <form
            id="user"
            className="stack"
            onSubmit={(event) => {
              event.preventDefault();
              void save();
            }}
          >
            <ReadOnlyNote needs="editor" />
            <EditableFields needs="editor">
              <TextField
                label="Email address"
                type="email"
                value={profile.email}
                onChange={(event) => change({ email: event.target.value })}
              />
              <TextField
                label="Name"
                value={profile.name}
                onChange={(event) => change({ name: event.target.value })}
              />
              <CheckField
                label="Email verified"
                checked={profile.verified}
                onChange={(event) => change({ verified: event.target.checked })}
              />
            </EditableFields>
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
              <a href={href(["logs"], { caller: `user:${userId}`, outcome: FAILURES })}>Failed</a>
            </dd>
          </dl>
          <Passkeys userId={userId} passkeys={user.passkeys} />
          <Card
            flush
            title="Sessions"
            actions={user.list.length > 0 && (
              <Button
                tone="bad"
                needs="editor"
                onClick={() =>
                  void attempt(async () => showToast(`${await endAll({ userId })} sessions ended.`))}
              >
                End all
              </Button>
            )}
          >
            {user.list.length === 0 && <Empty title="No sessions" />}
            {user.list.length > 0 && (
              <Table head={["Device", "Since"]} actions>
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
                        needs="editor"
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
              </Table>
            )}
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
      <Table head={["Name", "Used"]} actions>
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
                needs="editor"
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
      </Table>
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
