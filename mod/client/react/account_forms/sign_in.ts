/** Sign-in with every method that the server and the browser offer. */
import {
  createElement as h,
  type ReactElement,
  type ReactNode,
  type RefObject,
  useEffect,
  useRef,
  useState,
} from "react";
import { supportsPasskeys } from "../../account_features/mod.ts";
import type { SignInWays } from "../../accounts/accounts.ts";
import { usePasskeySignIn } from "../accounts/mod.ts";
import { useClient } from "../provider.ts";
import { useAuth } from "../use_auth.ts";
import {
  type Attempt,
  Button,
  CodeField,
  codeFrom,
  Field,
  Form,
  Panel,
  PasswordField,
  useAttempt,
} from "./elements.ts";
import { codeOf, useTexts } from "./texts.ts";
import { type SignInStep, TwoSteps } from "./two_steps.ts";

/** A form that {@linkcode AccountForms} shows. */
export type AccountForm = "signIn" | "signUp" | "reset";

/** Options of the forms for users who are not signed in. */
export interface AccountFormProps {
  /** Called when the user chooses another form. Without it, the form offers no other. */
  readonly onChoose?: (form: AccountForm) => void;
  /**
   * Page to which links in mails and providers return. It must be on the server's allowlist (`--auth-redirect-url`). Default: that of
   * the server for mails, and the current page for providers.
   */
  readonly redirectTo?: string;
}

/** Returns the option for `client.auth`. */
export function returning({ redirectTo }: AccountFormProps): { readonly redirectTo?: string } {
  return redirectTo === undefined ? {} : { redirectTo };
}

/**
 * A sign-in form: with a password, and with mail, providers and passkeys where they are available. It asks for the second step of
 * accounts that have one.
 */
export function SignIn(
  props: AccountFormProps & {
    /** Shown above the form. */
    readonly notice?: string;
    /** An error of a sign-in that began before, such as that of `completeRedirect`. */
    readonly error?: unknown;
  },
): ReactElement {
  const attempt = useAttempt();
  const shown = useRef<unknown>(null);
  return h(TwoSteps, {
    onExpired: attempt.fail,
    first: (firstStep) => h(FirstStep, { ...props, attempt, firstStep, shown }),
  });
}

type FirstStepProps = Parameters<typeof SignIn>[0] & {
  readonly attempt: Attempt;
  readonly firstStep: SignInStep;
  /** The last `error` that was shown. It is not shown again after a return from the second step. */
  readonly shown: RefObject<unknown>;
};

function FirstStep(
  { notice, error = null, attempt, firstStep, shown, ...props }: FirstStepProps,
): ReactElement {
  const { onChoose } = props;
  const texts = useTexts();
  const { auth } = useAuth();
  const ways = useSignInWays();
  const [mailedTo, setMailedTo] = useState<string | null>(null);
  const [verificationTo, setVerificationTo] = useState<string | null>(null);
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (error === null || error === shown.current) return;
    shown.current = error;
    // An error with a challenge opens the second step.
    void attempt.run(() => firstStep(() => Promise.reject(error)));
  }, [error]);
  const emailField = () => form.current?.querySelector<HTMLInputElement>('[name="email"]') ?? null;

  async function sendCode() {
    const field = emailField();
    if (field === null || !field.reportValidity()) return;
    await auth.requestMagicLink({ email: field.value, ...returning(props) });
    setMailedTo(field.value);
  }

  async function sendVerification() {
    const email = emailField()?.value ?? "";
    await auth.requestEmailVerification({ email, ...returning(props) });
    setVerificationTo(email);
  }

  if (mailedTo !== null) {
    return h(
      Panel,
      { title: texts.signIn, step: "code" },
      h("p", { role: "status" }, texts.mailSent(mailedTo)),
      h(
        Form,
        {
          attempt,
          submit: texts.signIn,
          onSubmit: (field) =>
            firstStep(() => auth.signInWithMagic({ email: mailedTo, code: codeFrom(field) })),
          more: h(Button, { look: "link", onClick: () => setMailedTo(null) }, texts.back),
        },
        h(CodeField, { attempt, label: texts.codeFromMail }),
      ),
    );
  }
  return h(
    Panel,
    { title: texts.signIn },
    h("p", { role: "status" }, verificationTo === null ? notice : texts.verificationSent(verificationTo)),
    h(
      "div",
      { ref: form, className: "syncline-group" },
      h(
        Form,
        {
          attempt,
          submit: texts.signIn,
          onSubmit: (field) =>
            firstStep(() => auth.signIn({ email: field("email"), password: field("password") })),
          more: attempt.code === "email_not_verified"
            ? h(Button, { attempt, onClick: sendVerification }, texts.mailAgain)
            : null,
        },
        h(Field, {
          attempt,
          label: texts.email,
          name: "email",
          type: "email",
          // The browser offers passkeys in this field.
          autoComplete: "username webauthn",
          faults: ["invalid_email"],
        }),
        h(PasswordField, { attempt }),
      ),
      h(PasskeyButton, { attempt }),
      ways?.magicLink ? h(Button, { attempt, onClick: sendCode }, texts.mailSignIn) : null,
      ways?.oauth.map((provider) =>
        h(ProviderButton, { key: provider, provider, attempt, firstStep, options: returning(props) })
      ),
    ),
    onChoose === undefined ? null : h(
      "div",
      { className: "syncline-group" },
      h(Button, { look: "link", onClick: () => onChoose("reset") }, texts.forgotPassword),
      ways?.signups ? h(Button, { look: "link", onClick: () => onChoose("signUp") }, texts.toSignUp) : null,
    ),
  );
}

/** Signs in with a provider in a window, or in this page if the browser blocks windows. */
function ProviderButton(
  { provider, options, attempt, firstStep }: {
    readonly provider: string;
    readonly options: { readonly redirectTo?: string };
    readonly attempt: Attempt;
    readonly firstStep: SignInStep;
  },
): ReactElement {
  const { auth } = useAuth();
  const signIn = () =>
    firstStep(async () => {
      try {
        await auth.signInWithPopup(provider, options);
      } catch (error) {
        if (codeOf(error) !== "popup_blocked") throw error;
        auth.signInWithOAuth(provider, options);
      }
    });
  return h(Button, { attempt, onClick: signIn }, useTexts().signInWith(provider));
}

/** Shown if the browser supports passkeys. While it is mounted, they are also offered in the email field. */
function PasskeyButton({ attempt }: { readonly attempt: Attempt }): ReactNode {
  const texts = useTexts();
  const signIn = usePasskeySignIn({ onError: attempt.fail });
  const isSupported = usePasskeySupport();
  return isSupported ? h(Button, { attempt, onClick: () => signIn() }, texts.passkeySignIn) : null;
}

/** Whether the browser supports passkeys; `undefined` until that is known. */
export function usePasskeySupport(): boolean | undefined {
  const [isSupported, setSupported] = useState<boolean>();
  useEffect(() => {
    void supportsPasskeys().then(setSupported);
  }, []);
  return isSupported;
}

/** The server's sign-in methods; `null` until they are known, and if it cannot be reached. */
function useSignInWays(): SignInWays | null {
  const client = useClient();
  const [ways, setWays] = useState<SignInWays | null>(null);
  useEffect(() => {
    let isMounted = true;
    client?.auth.signInWays().then((found) => isMounted && setWays(found), () => {
      // A password can be tried without them, and that error is shown.
    });
    return () => {
      isMounted = false;
    };
  }, [client]);
  return ways;
}
