/** Sign-up with email and password, and the reset of a password. */
import { createElement as h, type ReactElement, useState } from "react";
import type { EmailProof } from "../../accounts/accounts.ts";
import { useAuth } from "../use_auth.ts";
import {
  type Attempt,
  Button,
  CodeField,
  codeFrom,
  Field,
  Form,
  HiddenEmail,
  NewPasswordField,
  Panel,
  useAttempt,
} from "./elements.ts";
import { type AccountFormProps, returning } from "./sign_in.ts";
import { useTexts } from "./texts.ts";
import { type SignInStep, TwoSteps } from "./two_steps.ts";

/** A sign-up form with email and password. If the address must be verified first, it asks for the code of the mail. */
export function SignUp({ onChoose }: AccountFormProps): ReactElement {
  const texts = useTexts();
  const { auth } = useAuth();
  const attempt = useAttempt();
  const [created, setCreated] = useState<{ readonly email: string; readonly password: string } | null>(null);
  const toSignIn = onChoose && h(Button, { look: "link", onClick: () => onChoose("signIn") }, texts.toSignIn);

  async function signUp(field: (name: string) => string) {
    const account = { email: field("email"), password: field("password") };
    if ((await auth.signUp(account)).verificationRequired) setCreated(account);
  }

  async function verify(account: { email: string; password: string }, code: string) {
    await auth.verifyEmail({ email: account.email, code });
    await auth.signIn(account);
  }

  if (created !== null) {
    return h(
      Panel,
      { title: texts.confirmEmail, step: "code" },
      h("p", { role: "status" }, texts.mailSent(created.email)),
      h(
        Form,
        {
          attempt,
          submit: texts.confirm,
          onSubmit: (field) => verify(created, codeFrom(field)),
          more: toSignIn,
        },
        h(CodeField, { attempt, label: texts.codeFromMail }),
      ),
    );
  }
  return h(
    Panel,
    { title: texts.signUp },
    h(
      Form,
      { attempt, submit: texts.signUp, onSubmit: signUp, more: toSignIn },
      h(EmailField, { attempt }),
      h(NewPasswordField, { attempt, label: texts.password }),
    ),
  );
}

function EmailField({ attempt }: { readonly attempt: Attempt }): ReactElement {
  return h(Field, {
    attempt,
    label: useTexts().email,
    name: "email",
    type: "email",
    autoComplete: "username",
    faults: ["invalid_email", "email_in_use"],
  });
}

/** A form that mails a code and sets a new password with it, which signs in. */
export function ResetPassword(
  props: AccountFormProps & {
    /** The token of a link in a mail, from `completeRedirect`: the form then only asks for the new password. */
    readonly token?: string;
    /** Called when the new password is set. */
    readonly onDone?: () => void;
  },
): ReactElement {
  const attempt = useAttempt();
  return h(TwoSteps, {
    onSignedIn: props.onDone,
    onExpired: attempt.fail,
    first: (firstStep) => h(ResetSteps, { ...props, attempt, firstStep }),
  });
}

function ResetSteps(
  { token, attempt, firstStep, ...props }: Parameters<typeof ResetPassword>[0] & {
    readonly attempt: Attempt;
    readonly firstStep: SignInStep;
  },
): ReactElement {
  const texts = useTexts();
  const { auth } = useAuth();
  const [mailedTo, setMailedTo] = useState<string | null>(null);
  const { onChoose } = props;
  const toSignIn = onChoose && h(Button, { look: "link", onClick: () => onChoose("signIn") }, texts.back);

  async function request(field: (name: string) => string) {
    const email = field("email");
    await auth.requestPasswordReset({ email, ...returning(props) });
    setMailedTo(email);
  }

  if (token === undefined && mailedTo === null) {
    return h(
      Panel,
      { title: texts.resetTitle },
      h(
        Form,
        { attempt, submit: texts.resetRequest, onSubmit: request, more: toSignIn },
        h(EmailField, { attempt }),
      ),
    );
  }
  const onSubmit = (field: (name: string) => string) => {
    const proof: EmailProof = token === undefined
      ? { email: mailedTo ?? "", code: codeFrom(field) }
      : { token };
    return firstStep(() => auth.resetPassword({ ...proof, password: field("password") }));
  };
  return h(
    Panel,
    { title: texts.resetTitle, step: "code" },
    mailedTo === null ? null : h("p", { role: "status" }, texts.mailSent(mailedTo)),
    h(
      Form,
      { attempt, submit: texts.resetSubmit, onSubmit, more: toSignIn },
      mailedTo === null ? null : h(HiddenEmail, { email: mailedTo }),
      token === undefined ? h(CodeField, { attempt, label: texts.codeFromMail }) : null,
      h(NewPasswordField, { attempt, label: texts.newPassword }),
    ),
  );
}
