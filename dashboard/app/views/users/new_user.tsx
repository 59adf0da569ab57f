/** Dialog that creates a user account. */
import { type FormEvent, useState } from "react";
import { useAction } from "syncline/react";
import { api } from "../../server/api.ts";
import { go } from "../../shell/route.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { CheckField, TextField } from "../../ui/field.tsx";
import { attempt } from "../../ui/toasts.tsx";

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
          <Button onClick={onClose}>Cancel</Button>
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
