/** The second step of a sign-in: a code of the authenticator app, or a recovery code. */
import { createElement as h, type ReactElement, type ReactNode, useState } from "react";
import type { FactorProof } from "../../account_features/mod.ts";
import { useSignInChallenge } from "../accounts/mod.ts";
import { Button, CodeField, codeFrom, Field, Form, Panel, useAttempt, useStepFocus } from "./elements.ts";
import { codeOf, useTexts } from "./texts.ts";

/** Runs the first step of a sign-in. */
export type SignInStep = (signIn: () => Promise<unknown>) => Promise<void>;

/** Shows the second step when a sign-in needs one, and otherwise the first step, which receives the function that runs it. */
export function TwoSteps(
  { onSignedIn, onExpired, first }: {
    /** Called after the last step. */
    readonly onSignedIn?: (() => void) | undefined;
    /** Called with the error when the second step took too long, and the first step is shown again. */
    readonly onExpired: (error: unknown) => void;
    readonly first: (firstStep: SignInStep) => ReactNode;
  },
): ReactElement {
  const { challenge, attempt, finish, cancel } = useSignInChallenge();
  const root = useStepFocus<HTMLDivElement>(challenge === null ? "first" : "second");
  const firstStep: SignInStep = async (signIn) => {
    if (await attempt(signIn)) onSignedIn?.();
  };
  const prove = async (proof: FactorProof) => {
    try {
      await finish(proof);
    } catch (error) {
      if (codeOf(error) !== "invalid_challenge") throw error;
      return onExpired(error);
    }
    onSignedIn?.();
  };
  return h(
    "div",
    { ref: root },
    challenge === null ? first(firstStep) : h(SecondStep, { onProof: prove, onCancel: cancel }),
  );
}

function SecondStep(
  { onProof, onCancel }: {
    readonly onProof: (proof: FactorProof) => Promise<void>;
    readonly onCancel: () => void;
  },
): ReactElement {
  const texts = useTexts();
  return h(
    Panel,
    { title: texts.secondStep },
    h(ProofForm, {
      onProof,
      more: h(Button, { look: "link", onClick: onCancel }, texts.back),
    }),
  );
}

/** A form for a code of the authenticator app or a recovery code. */
export function ProofForm(
  { onProof, more }: {
    readonly onProof: (proof: FactorProof) => Promise<void>;
    readonly more?: ReactNode;
  },
): ReactElement {
  const texts = useTexts();
  const attempt = useAttempt();
  const [isRecovery, setRecovery] = useState(false);
  const change = () => setRecovery(!isRecovery);
  return h(
    Form,
    {
      attempt,
      submit: texts.continue,
      onSubmit: (field) => {
        const code = codeFrom(field);
        return onProof(isRecovery ? { recoveryCode: code } : { code });
      },
      more: [
        h(
          Button,
          { key: "change", look: "link", onClick: change },
          isRecovery ? texts.useAppCode : texts.useRecoveryCode,
        ),
        h("div", { key: "more" }, more),
      ],
    },
    isRecovery
      ? h(Field, {
        key: "recovery",
        attempt,
        label: texts.recoveryCode,
        name: "code",
        autoComplete: "off",
        autoFocus: true,
        faults: ["invalid_code"],
      })
      : h(CodeField, { key: "app", attempt, label: texts.secondStepCode }),
  );
}
