/** The passkeys of the signed-in user: added, renamed, removed. */
import { createElement as h, type ReactElement, type ReactNode, useState } from "react";
import type { OwnPasskey } from "../../account_features/mod.ts";
import { usePasskeys, useSecondFactor } from "../accounts/mod.ts";
import { PasswordForm, useConfirmation, useHasPassword } from "./confirmation.ts";
import { Button, Field, Form, Loading, Panel, Problem, useAttempt } from "./elements.ts";
import { usePasskeySupport } from "./sign_in.ts";
import { useTexts } from "./texts.ts";

/** The step that asks for the password. Other steps are the id of the passkey to rename. */
const PASSWORD = "password";

/** The passkeys of the signed-in user, with their last use. */
export function PasskeyList(): ReactNode {
  const texts = useTexts();
  const { passkeys, addPasskey, renamePasskey, removePasskey } = usePasskeys();
  const { factors } = useSecondFactor();
  const hasPassword = useHasPassword();
  const isSupported = usePasskeySupport();
  const attempt = useAttempt();
  const [step, setStep] = useState<string>();
  const end = () => setStep(undefined);
  const confirmation = useConfirmation(attempt, end);
  if (passkeys === null || factors === null) return null;
  if (passkeys === undefined || factors === undefined || hasPassword === undefined) return h(Loading);
  // Accounts with a factor confirm it instead.
  const needsPassword = hasPassword && passkeys.length === 0 && factors.totp === null;
  // Without an id, an anonymous user has signed up: no step follows.
  const add = async (options: { readonly password?: string } = {}) => setStep(await addPasskey(options));
  const renamed = passkeys.find(({ passkeyId }) => passkeyId === step);

  function content(): ReactNode {
    if (confirmation.form !== null) return confirmation.form;
    if (step === PASSWORD) {
      return h(PasswordForm, {
        onCancel: end,
        onPassword: (password) => confirmation.make(() => add({ password })),
      });
    }
    if (renamed !== undefined) {
      return h(RenameForm, {
        name: renamed.name,
        onCancel: end,
        async onName(name) {
          await renamePasskey({ passkeyId: renamed.passkeyId, name });
          end();
        },
      });
    }
    return h(
      "div",
      { className: "syncline-group" },
      passkeys?.length
        ? h(
          "ul",
          { className: "syncline-list", "aria-label": texts.passkeysTitle },
          passkeys.map((passkey) =>
            h(Entry, {
              key: passkey.passkeyId,
              passkey,
              onRename: () => setStep(passkey.passkeyId),
              onRemove: () => confirmation.run(() => removePasskey(passkey.passkeyId)),
            })
          ),
        )
        : h("p", { className: "syncline-quiet" }, texts.passkeysNone),
      h(Problem, { attempt }),
      isSupported === false ? h("p", { className: "syncline-quiet" }, texts.passkeysUnsupported) : h(
        "div",
        { className: "syncline-row" },
        h(
          Button,
          {
            onClick: () => needsPassword ? setStep(PASSWORD) : confirmation.run(add),
          },
          texts.passkeyAdd,
        ),
      ),
    );
  }

  // Not the name of the step: a new passkey may arrive after it, and the focus waits for its form.
  const shown = [confirmation.form, renamed, step === PASSWORD].map(Boolean).join();
  return h(Panel, { title: texts.passkeysTitle, step: shown }, content());
}

function Entry(
  { passkey: { name, lastUsedAt, backedUp }, onRename, onRemove }: {
    readonly passkey: OwnPasskey;
    readonly onRename: () => void;
    readonly onRemove: () => void;
  },
): ReactElement {
  const texts = useTexts();
  const details = [texts.passkeyUsed(lastUsedAt), backedUp ? texts.passkeyBackedUp : ""].filter(Boolean);
  return h(
    "li",
    null,
    h("div", null, h("span", null, name), h("small", null, details.join(" · "))),
    h(Button, { label: texts.rename(name), onClick: onRename }, texts.renameShort),
    h(Button, { label: texts.remove(name), onClick: onRemove }, texts.removeShort),
  );
}

function RenameForm(
  { name, onName, onCancel }: {
    readonly name: string;
    readonly onName: (name: string) => Promise<void>;
    readonly onCancel: () => void;
  },
): ReactElement {
  const texts = useTexts();
  const attempt = useAttempt();
  return h(
    Form,
    {
      attempt,
      submit: texts.save,
      onSubmit: (field) => onName(field("name")),
      more: h(Button, { look: "link", onClick: onCancel }, texts.cancel),
    },
    h(Field, {
      attempt,
      label: texts.passkeyName,
      name: "name",
      defaultValue: name,
      maxLength: 60,
      autoComplete: "off",
    }),
  );
}
