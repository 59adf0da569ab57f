/** Administrators of this server, and the password of the signed-in one. */
import { useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import type { AdminRole } from "../../../../mod/functions/admin_roles.ts";
import { api } from "../../server/api.ts";
import { go } from "../../shell/route.ts";
import { useCreateDialog } from "../../ui/create_dialog.ts";
import { ROLE_TEXTS, useRole } from "../../ui/access.tsx";
import { Badge, Button, ChoiceField, Icon, SelectField, TextField } from "../../ui/controls.tsx";
import { FormDialog, useConfirm } from "../../ui/dialog.tsx";
import { Menu } from "../../ui/menu.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { TableCard, View } from "../../ui/view.tsx";
import { BreakableName, Time } from "../../ui/format.tsx";
import { useIdentityProof } from "../../ui/identity_proof.tsx";
import { Passkeys } from "./passkeys.tsx";
import { SecondFactor } from "./second_factor.tsx";

const PASSWORD_RULE = "At least 8 characters.";

const ROLES = [["viewer", "viewer"], ["editor", "editor"], ["owner", "owner"]] as const;

export function Administrators() {
  const list = useQuery(api.administrators.list);
  const remove = useMutation(api.administrators.remove);
  const endSessions = useMutation(api.administrators.endSessions);
  const endOwnSessions = useMutation(api.administrators.endOwnSessions);
  const removeFactors = useAction(api.administrators.removeFactors);
  const setRole = useMutation(api.administrators.setRole);
  const isOwner = useRole() === "owner";
  const { ask, dialog } = useConfirm();
  const { confirmed, proofDialog } = useIdentityProof();
  const [creating, setCreating] = useCreateDialog(["administrators"], { needs: "owner" });
  const [changing, setChanging] = useState(false);
  const [securing, setSecuring] = useState(false);
  const [managing, setManaging] = useState(false);
  return (
    <View
      title="Administrators"
      text="Viewers read, editors also change data and code, owners also manage access, secrets and restores."
      actions={
        <>
          <Button onClick={() => setChanging(true)}>Change my password</Button>
          <Button onClick={() => setSecuring(true)}>My second factor</Button>
          <Button onClick={() => setManaging(true)}>My passkeys</Button>
          <Button tone="accent" needs="owner" onClick={() => setCreating(true)}>
            <Icon name="plus" /> New administrator
          </Button>
        </>
      }
    >
      <TableCard
        empty={{ title: "No administrators" }}
        head={["Email", "Role", "Second factor", { number: "Sessions" }, "Created"]}
        actions
        rows={list}
        row={({ adminId, email, role, createdAt, secondFactor, passkeys, sessions, you }) => (
          <tr key={adminId}>
            <td className="args">
              <BreakableName text={email} /> {you && <Badge tone="accent">you</Badge>}
            </td>
            <td>
              {isOwner
                ? (
                  <ChoiceField
                    label={`Role of ${email}`}
                    value={role}
                    options={ROLES}
                    onChange={(role) =>
                      void attempt(
                        () => setRole({ adminId, role: role as AdminRole }),
                        `${email} is now ${role === "viewer" ? "a" : "an"} ${role}.`,
                      )}
                  />
                )
                : role}
            </td>
            <td>{factorText(secondFactor, passkeys)}</td>
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
                    ...!you && { needs: "owner" as const },
                    run: () =>
                      void attempt(
                        () =>
                          you ? endOwnSessions({}) : endSessions({ adminId }),
                        "Sessions ended.",
                      ),
                  },
                  { text: "Change history", run: () => go(["audit"], { admin: adminId }) },
                  {
                    text: "Remove second factor",
                    needs: "owner",
                    disabled: you || !secondFactor && passkeys === 0,
                    run: () =>
                      ask({
                        title: `Remove the second factor of ${email}?`,
                        text: "Removes the authenticator app, the recovery codes and all passkeys.",
                        button: "Remove second factor",
                        done: "Second factor removed.",
                        run: () => confirmed(() => removeFactors({ adminId })),
                      }),
                  },
                  {
                    text: "Remove",
                    tone: "bad",
                    needs: "owner",
                    run: () =>
                      ask({
                        title: `Remove ${email}?`,
                        text: "Ends all sessions of the administrator.",
                        button: "Remove administrator",
                        done: "Administrator removed.",
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
      {securing && <SecondFactor onClose={() => setSecuring(false)} />}
      {managing && <Passkeys onClose={() => setManaging(false)} />}
      {changing && <ChangePassword onClose={() => setChanging(false)} />}
      {dialog}
      {proofDialog}
    </View>
  );
}

function factorText(app: boolean, passkeys: number): string {
  const words = [
    app ? ["authenticator app"] : [],
    passkeys > 0 ? [passkeys === 1 ? "passkey" : `${passkeys} passkeys`] : [],
  ].flat();
  return words.join(", ") || "none";
}

function Create({ onClose }: { readonly onClose: () => void }) {
  const create = useAction(api.administrators.create);
  async function submit(form: FormData): Promise<void> {
    const account = {
      email: String(form.get("email")),
      password: String(form.get("password")),
      role: String(form.get("role")) as AdminRole,
    };
    if (await attempt(() => create(account), "Administrator created.")) onClose();
  }
  return (
    <FormDialog
      title="New administrator"
      button="Create administrator"
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField label="Email address" name="email" type="email" required autoFocus />
      <TextField
        label="Password"
        name="password"
        type="password"
        autoComplete="new-password"
        minLength={8}
        maxLength={256}
        required
        hint={`${PASSWORD_RULE} Share it with the new administrator, who can change it here.`}
      />
      <SelectField label="Role" name="role" required defaultValue="">
        <option value="" disabled>Choose a role</option>
        {Object.entries(ROLE_TEXTS).map(([role, text]) => (
          <option key={role} value={role}>{`${role}: ${text}`}</option>
        ))}
      </SelectField>
    </FormDialog>
  );
}

function ChangePassword({ onClose }: { readonly onClose: () => void }) {
  const change = useAction(api.administrators.changePassword);
  async function submit(form: FormData): Promise<void> {
    const passwords = {
      currentPassword: String(form.get("current")),
      newPassword: String(form.get("new")),
    };
    if (await attempt(() => change(passwords), "Password changed.")) onClose();
  }
  return (
    <FormDialog
      title="Change my password"
      text="Ends your other sessions."
      button="Change password"
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label="Current password"
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
        hint={PASSWORD_RULE}
      />
    </FormDialog>
  );
}
