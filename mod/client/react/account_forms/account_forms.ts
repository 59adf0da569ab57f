/** All forms for users who are not signed in, and the results that links and providers return to the page. */
import { createElement as h, type ReactElement, type ReactNode, useEffect, useState } from "react";
import type { RedirectResult } from "../../accounts/accounts.ts";
import type { SynclineClient } from "../../client.ts";
import { useClient } from "../provider.ts";
import { useAuth } from "../use_auth.ts";
import { Button, Form, Loading, Panel, useAttempt, useStepFocus } from "./elements.ts";
import { type AccountForm, type AccountFormProps, SignIn } from "./sign_in.ts";
import { ResetPassword, SignUp } from "./sign_up.ts";
import { useTexts } from "./texts.ts";
import { type SignInStep, TwoSteps } from "./two_steps.ts";

/** A result in the page's address, or the error of one. */
interface Redirect {
  readonly result: RedirectResult;
  readonly error: unknown;
}

const NO_REDIRECT: Redirect = { result: { type: "none" }, error: null };

/** By client, because the result is removed from the address when it is read. */
const redirects = new WeakMap<SynclineClient, Promise<Redirect>>();

function redirectOf(client: SynclineClient): Promise<Redirect> {
  let found = redirects.get(client);
  if (found === undefined) {
    found = client.auth.completeRedirect().then(
      (result) => ({ ...NO_REDIRECT, result }),
      (error) => ({ ...NO_REDIRECT, error }),
    );
    redirects.set(client, found);
  }
  return found;
}

/** Returns the result in the page's address, `null` until it is known, and a function that ends its display. */
function useRedirect(): [Redirect | null, () => void] {
  const client = useClient();
  const { status } = useAuth();
  const [redirect, setRedirect] = useState<Redirect | null>(null);
  useEffect(() => {
    let isMounted = true;
    if (client !== null) void redirectOf(client).then((found) => isMounted && setRedirect(found));
    return () => {
      isMounted = false;
    };
  }, [client]);
  const clear = () => {
    if (client !== null) redirects.set(client, Promise.resolve(NO_REDIRECT));
    setRedirect(NO_REDIRECT);
  };
  // A sign-in ends the display: the forms do not show an old error, or use its challenge again, after the next sign-out.
  useEffect(() => () => {
    if (status === "signedOut" && client?.authState().status === "signedIn") clear();
  }, [client, status]);
  return [redirect, clear];
}

/** Options of all forms. */
export interface FormsProps extends Pick<AccountFormProps, "redirectTo"> {
  /** Class of the element around the forms. */
  readonly className?: string;
}

/**
 * Shows its children to signed-in users, and the forms for sign-in, sign-up and password reset to others. It also handles the
 * links of mails and the returns of providers, for which it calls `completeRedirect`.
 *
 * @example
 * ```tsx
 * <SynclineProvider client={client}>
 *   <RequireSignIn>
 *     <App />
 *   </RequireSignIn>
 * </SynclineProvider>
 * ```
 */
export function RequireSignIn(
  { children, ...props }: FormsProps & { readonly children?: ReactNode },
): ReactNode {
  const { status } = useAuth();
  const [redirect, clear] = useRedirect();
  // These links need an answer of the user, also of one who is signed in.
  const asks = redirect !== null && ["magicLink", "resetPassword"].includes(redirect.result.type);
  if (status === "signedIn" && !asks) return children;
  if (status === "loading" || redirect === null) return h(Loading);
  return h(Forms, { ...props, redirect, onDone: clear });
}

/**
 * The forms for sign-in, sign-up and password reset, which lead to each other. Handles links of mails and returns of providers like
 * {@linkcode RequireSignIn}.
 */
export function AccountForms(props: FormsProps): ReactElement {
  const [redirect, clear] = useRedirect();
  return redirect === null ? h(Loading) : h(Forms, { ...props, redirect, onDone: clear });
}

function Forms(
  { redirect, onDone, className, ...props }: FormsProps & {
    readonly redirect: Redirect;
    readonly onDone: () => void;
  },
): ReactElement {
  const texts = useTexts();
  const [form, setForm] = useState<AccountForm>("signIn");
  const root = useStepFocus<HTMLDivElement>(form);
  const { result, error } = redirect;
  const choose = (next: AccountForm) => {
    onDone();
    setForm(next);
  };
  const all = { ...props, onChoose: choose };
  const notice = result.type === "emailVerified"
    ? texts.emailVerified
    : result.type === "ignored"
    ? texts.linkIgnored
    : undefined;
  const shown = result.type === "magicLink"
    ? h(ForeignLink, { token: result.token, onDone })
    : result.type === "resetPassword"
    ? h(ResetPassword, { ...all, token: result.token, onDone })
    : form === "signUp"
    ? h(SignUp, all)
    : form === "reset"
    ? h(ResetPassword, all)
    : h(SignIn, { ...all, error, ...notice !== undefined && { notice } });
  return h("div", { ref: root, className }, shown);
}

/** Asks before it signs in with a link that this browser did not request: it may be of another person's account. */
function ForeignLink(
  { token, onDone }: { readonly token: string; readonly onDone: () => void },
): ReactElement {
  const texts = useTexts();
  const { auth } = useAuth();
  const attempt = useAttempt();
  const form = (firstStep: SignInStep) =>
    h(
      Panel,
      { title: texts.linkTitle },
      h("p", null, texts.linkQuestion),
      h(Form, {
        attempt,
        submit: texts.signIn,
        onSubmit: () => firstStep(() => auth.signInWithMagic({ token })),
        more: h(Button, { look: "link", onClick: onDone }, texts.cancel),
      }),
    );
  return h(TwoSteps, { onSignedIn: onDone, onExpired: attempt.fail, first: form });
}
