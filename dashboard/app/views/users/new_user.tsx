/** Makes an account for somebody. */
import { type FormEvent, useState } from "react";
import { useAction } from "syncline/react";
import { api } from "../../server/api.ts";
import { go } from "../../shell/route.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { CheckField, TextField } from "../../ui/field.tsx";
import { attempt } from "../../ui/notes.tsx";

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
    }, "The user is created.");
    setBusy(false);
    if (done) onClose();
  }
  return (
    <Dialog
      open
      title="New user"
      onClose={onClose}
      foot={
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
          hint="Left empty, they set one with a mail to reset it, or sign in by mail."
        />
        <CheckField label="The address is confirmed" name="verified" defaultChecked />
      </form>
    </Dialog>
  );
}
