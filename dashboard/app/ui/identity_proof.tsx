/** Asks administrators to confirm their identity before a change that the server permits only soon after a proof. */
import { useState } from "react";
import { FunctionError } from "syncline/client";
import { proofOf } from "syncline/accounts";
import { useAction } from "syncline/react";
import { api } from "../server/api.ts";
import { TextField } from "./controls.tsx";
import { FormDialog } from "./dialog.tsx";
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

  async function submit(form: FormData): Promise<void> {
    const typed = String(form.get("proof"));
    const proved = await attempt(() =>
      question?.by === "factor" ? prove(proofOf(typed)) : confirmPassword({ password: typed })
    );
    if (!proved) return;
    setQuestion(null);
    question?.proved();
  }

  const proofDialog = question && (
    <FormDialog
      title="Confirm that it is you"
      button="Continue"
      onSubmit={submit}
      onClose={() => {
        setQuestion(null);
        question.canceled();
      }}
    >
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
  );
  return { confirmed, proofDialog };
}
