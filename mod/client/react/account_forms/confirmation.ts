/** Changes of an account that need a proof first: the password, a code or a passkey. */
import { createElement as h, type ReactElement, type ReactNode, useState } from "react";
import { useQueries } from "../use_queries.ts";
import { ownAccount } from "../../accounts/own_account.ts";
import { usePasskeys, useSecondFactor } from "../accounts/mod.ts";
import { type Attempt, Button, Form, PasswordField, Problem, useAttempt } from "./elements.ts";
import { codeOf, useTexts } from "./texts.ts";
import { ProofForm } from "./two_steps.ts";

/** Runs changes of the account. */
export interface Confirmation {
  /** Asks for a proof; `null` unless one is needed. Show it instead of the controls. */
  readonly form: ReactNode;
  /** Makes a change. If the server requires a proof, shows the form, and makes the change again after it. */
  make(change: () => Promise<unknown>): Promise<void>;
  /** Like `make`, but shows an error instead of throwing it. */
  run(change: () => Promise<unknown>): Promise<void>;
}

/** `attempt` shows the errors of changes. `endStep` is called before a change is made again: a step would hide its error. */
export function useConfirmation(attempt: Attempt, endStep: () => void): Confirmation {
  const [waiting, setWaiting] = useState<(() => Promise<unknown>) | null>(null);
  const end = () => setWaiting(null);
  const make = async (change: () => Promise<unknown>) => {
    try {
      await change();
    } catch (error) {
      if (codeOf(error) !== "factor_required") throw error;
      setWaiting(() => change);
    }
  };
  return {
    make,
    run: (change) => attempt.run(() => make(change)),
    form: waiting && h(Proof, {
      onCancel: end,
      onProved() {
        end();
        endStep();
        return attempt.run(waiting);
      },
    }),
  };
}

function Proof(
  { onProved, onCancel }: { readonly onProved: () => Promise<void>; readonly onCancel: () => void },
): ReactElement {
  const texts = useTexts();
  const { factors, proveFactor } = useSecondFactor();
  const { passkeys, provePasskey } = usePasskeys();
  const attempt = useAttempt();
  return h(
    "div",
    { className: "syncline-group" },
    h("p", { role: "status" }, texts.secondStep),
    passkeys?.length
      ? h(
        Button,
        {
          attempt,
          look: "main",
          onClick: async () => {
            await provePasskey();
            await onProved();
          },
        },
        texts.usePasskey,
      )
      : null,
    h(Problem, { attempt }),
    factors?.totp
      ? h(ProofForm, {
        onProof: async (proof) => {
          await proveFactor(proof);
          await onProved();
        },
      })
      : null,
    h(Button, { look: "link", onClick: onCancel }, texts.cancel),
  );
}

/** Asks for the password of the account. */
export function PasswordForm(
  { onPassword, onCancel }: {
    readonly onPassword: (password: string) => Promise<unknown>;
    readonly onCancel: () => void;
  },
): ReactElement {
  const texts = useTexts();
  const attempt = useAttempt({ invalid_credentials: texts.wrongPassword });
  return h(
    Form,
    {
      attempt,
      submit: texts.continue,
      onSubmit: (field) => onPassword(field("password")),
      more: h(Button, { look: "link", onClick: onCancel }, texts.cancel),
    },
    h(PasswordField, { attempt }),
  );
}

/** Whether the account has a password; `undefined` until that is known. */
export function useHasPassword(): boolean | undefined {
  // Errors as values, because the account may end while the settings are open.
  const { account } = useQueries({ account: { query: ownAccount, args: {} } });
  return account instanceof Error ? undefined : account?.hasPassword;
}
