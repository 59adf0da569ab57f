/** Asks administrators to confirm their identity before a change that the server permits only soon after a proof. */
import { useState } from "react";
import { FunctionError } from "syncline/client";
import { ownFactors, ownPasskeys, proofOf } from "syncline/accounts";
import { useAction, useQuery } from "syncline/react";
import { api } from "../server/api.ts";
import { Button, TextField } from "./controls.tsx";
import { Dialog, FormDialog } from "./dialog.tsx";
import { usePasskeyActions } from "./passkeys.ts";
import { attempt } from "./toasts.tsx";

const { administrators } = api;

interface Question {
  readonly by: "factor" | "password";
  readonly proved: () => void;
  readonly canceled: () => void;
}

/** Returns `confirmed`, which runs a change, after a proof if the server requires one, and the dialog to render. */
export function useIdentityProof() {
  const prove = useAction(administrators.proveFactor);
  const confirmPassword = useAction(administrators.confirmPassword);
  const { provePasskey } = usePasskeyActions();
  const factors = useQuery(ownFactors);
  const passkeys = useQuery(ownPasskeys);
  const [question, setQuestion] = useState<Question | null>(null);

  async function confirmed<Result>(change: () => Promise<Result>): Promise<Result> {
    try {
      return await change();
    } catch (error) {
      const code = error instanceof FunctionError ? error.code : null;
      if (code !== "factor_required" && code !== "confirmation_required") throw error;
      await new Promise<void>((proved, refuse) => {
        const canceled = () => refuse(new Error("Nothing was changed."));
        setQuestion({ by: code === "factor_required" ? "factor" : "password", proved, canceled });
      });
      return await change();
    }
  }

  async function proveBy(proof: () => Promise<unknown>): Promise<void> {
    if (!await attempt(proof)) return;
    setQuestion(null);
    question?.proved();
  }

  const submit = (form: FormData) => {
    const typed = String(form.get("proof"));
    return proveBy(() =>
      question?.by === "factor" ? prove(proofOf(typed)) : confirmPassword({ password: typed })
    );
  };
  const cancel = () => {
    setQuestion(null);
    question?.canceled();
  };
  const title = "Confirm that it is you";
  const passkeyButton = question?.by === "factor" && passkeys && passkeys.length > 0 && (
    <Button onClick={() => void proveBy(provePasskey)} {...(!factors?.totp && { tone: "accent" })}>
      Use a passkey
    </Button>
  );
  const proofDialog = question && (passkeyButton && !factors?.totp
    ? (
      <Dialog
        open
        title={title}
        text="With your fingerprint, face or PIN."
        onClose={cancel}
        footer={passkeyButton}
      />
    )
    : (
      <FormDialog title={title} button="Continue" onSubmit={submit} onClose={cancel}>
        {passkeyButton}
        {question.by === "factor"
          ? (
            <TextField
              label="Your code"
              name="proof"
              autoComplete="one-time-code"
              required
              autoFocus
              hint="From your authenticator app, or one of your recovery codes."
            />
          )
          : (
            <TextField
              label="Your password"
              name="proof"
              type="password"
              autoComplete="current-password"
              required
              autoFocus
            />
          )}
      </FormDialog>
    ));
  return { confirmed, proofDialog };
}
