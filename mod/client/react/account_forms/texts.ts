/** Texts of the account forms, and their messages for errors. */
import { createContext, createElement, type ReactElement, type ReactNode, useContext, useMemo } from "react";
import { AccountError } from "../../accounts/account_calls.ts";
import { ConnectionLostError, FunctionError } from "../../errors.ts";

/** Formats a time in milliseconds since the epoch in the language of the browser. */
function time(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** The built-in texts. */
const english = {
  loading: "Loading…",
  failed: "This cannot be shown at the moment.",
  cancel: "Cancel",
  back: "Back",
  email: "Email address",
  password: "Password",
  newPassword: "New password",
  passwordHint: "At least 8 characters",
  codeFromMail: "Code from the mail",
  mailSent: (email: string) => `We have sent a mail to ${email}. Open its link, or enter its code.`,

  signIn: "Sign in",
  signInWith: (provider: string) => `Continue with ${provider[0]?.toUpperCase()}${provider.slice(1)}`,
  passkeySignIn: "Sign in with a passkey",
  mailSignIn: "Email me a code",
  forgotPassword: "Forgot your password?",
  toSignUp: "New here? Create an account",
  toSignIn: "You have an account? Sign in",
  mailAgain: "Send the mail again",
  verificationSent: (email: string) => `We have sent a mail to ${email}. Open its link, then sign in.`,
  emailVerified: "Your email address is confirmed. You can sign in now.",
  linkIgnored: "This sign-in was not started in this browser. Sign in here instead.",
  linkTitle: "Sign in with the link?",
  linkQuestion: "This link was requested in another browser. Continue only if you requested it.",

  secondStep: "Confirm that it is you",
  secondStepCode: "Code of your authenticator app",
  recoveryCode: "Recovery code",
  useRecoveryCode: "Use a recovery code",
  useAppCode: "Use the authenticator app",
  usePasskey: "Use a passkey",
  continue: "Continue",

  signUp: "Create an account",
  confirmEmail: "Confirm your email address",
  confirm: "Confirm",
  resetTitle: "Reset your password",
  resetRequest: "Send a mail",
  resetSubmit: "Set the new password",

  factorTitle: "Two-step sign-in",
  factorOff: "Ask for a code of an authenticator app on your phone after the password.",
  factorOn: (since: number, codes: number) =>
    `On since ${time(since)}. You have ${codes} unused recovery ${codes === 1 ? "code" : "codes"}.`,
  factorSetUp: "Set up an authenticator app",
  factorScan: "Scan this code with an authenticator app, or enter the key there by hand.",
  factorQrCode: "QR code for an authenticator app",
  factorKey: "Key",
  factorFirstCode: "Code that the app shows",
  factorRemove: "Turn off",
  newRecoveryCodes: "New recovery codes",
  recoveryCodesTitle: "Your recovery codes",
  recoveryCodesText:
    "Each code signs you in once if you lose your phone. Store them: they are not shown again.",
  copy: "Copy",
  copied: "Copied",
  done: "Done",

  passkeysTitle: "Passkeys",
  passkeysNone: "With a passkey, you sign in with your fingerprint, face or PIN.",
  passkeysUnsupported: "This browser does not support passkeys.",
  passkeyAdd: "Add a passkey",
  passkeyUsed: (at: number | null) => at === null ? "Never used" : `Last used ${time(at)}`,
  passkeyBackedUp: "Synced",
  passkeyName: "Name of the passkey",
  save: "Save",
  rename: (name: string) => `Rename ${name}`,
  remove: (name: string) => `Remove ${name}`,
  renameShort: "Rename",
  removeShort: "Remove",

  sessionsTitle: "Where you are signed in",
  sessionName: (browser: string | null, system: string | null) =>
    browser !== null && system !== null ? `${browser} on ${system}` : browser ?? system ?? "Unknown device",
  sessionCurrent: "This device",
  sessionImpersonated: "An administrator who acts as you",
  sessionUsed: (at: number) => `Last used ${time(at)}`,
  signOut: "Sign out",
  signOutOf: (session: string) => `Sign out ${session}`,
  signOutOthers: "Sign out everywhere else",

  unreachable: "The server cannot be reached. Check your connection and try again.",
  wrongPassword: "The password is wrong.",
  rateLimited: (seconds: number) =>
    `Too many attempts. Try again in ${seconds} second${seconds === 1 ? "" : "s"}.`,
  /** Messages by error code. For other codes, the message of the server or the app is shown. */
  errors: {
    access_denied: "The sign-in was canceled at the provider.",
    confirmation_required: "Sign out and in again to make this change.",
    email_in_use: "An account with this email address exists. Sign in instead.",
    email_not_verified: "Confirm your email address first: open the link in the mail that we sent you.",
    invalid_challenge: "This took too long. Start again.",
    invalid_code: "The code or link is wrong, has expired or was used before.",
    invalid_credentials: "The email address or the password is wrong.",
    invalid_email: "This is not a valid email address.",
    invalid_enrolment: "The setup took too long. Start again.",
    invalid_password: "The password may have up to 256 characters.",
    passkey_copied:
      "This passkey was refused, because a copy of it may be in use. Sign in another way and replace it.",
    passkey_exists: "This passkey is added already.",
    signups_disabled: "New accounts cannot be created here.",
    unknown_passkey: "This passkey is not registered here, or was removed.",
    weak_password: "The password needs at least 8 characters.",
  } as Readonly<Record<string, string>>,
};

/** All texts of the account forms. */
export type FormTexts = typeof english;

const TextsContext = createContext<FormTexts>(english);

/**
 * Replaces texts of the account forms below it, for another language or wording.
 *
 * @example
 * ```tsx
 * <AccountTexts texts={{ signIn: "Anmelden", errors: { invalid_code: "Der Code ist falsch." } }}>
 *   <SignIn />
 * </AccountTexts>
 * ```
 */
export function AccountTexts(
  { texts, children }: { readonly texts: Partial<FormTexts>; readonly children?: ReactNode },
): ReactElement {
  const outer = useTexts();
  const value = useMemo(
    () => ({ ...outer, ...texts, errors: { ...outer.errors, ...texts.errors } }),
    [outer, texts],
  );
  return createElement(TextsContext.Provider, { value }, children);
}

/** Returns the texts of the forms. */
export function useTexts(): FormTexts {
  return useContext(TextsContext);
}

/** Returns the code of an error of `client.auth` or of a function; `null` for any other error. */
export function codeOf(error: unknown): string | null {
  return error instanceof AccountError || error instanceof FunctionError ? error.code : null;
}

/** Returns the message of an error for users; an empty string if they caused it, by closing a window or a prompt. */
export function problemOf(texts: FormTexts, error: unknown): string {
  const code = codeOf(error);
  if (code === "popup_closed") return "";
  if (code === "rate_limited") {
    const { retryAfterMs, retryAfter } = error as {
      retryAfterMs?: number | null;
      retryAfter?: number | null;
    };
    const waitMs = retryAfterMs ?? retryAfter;
    if (waitMs) return texts.rateLimited(Math.ceil(waitMs / 1000));
  }
  if (code !== null) return texts.errors[code] ?? (error as Error).message;
  if (error instanceof DOMException) {
    if (error.name === "InvalidStateError") return texts.errors["passkey_exists"] ?? error.message;
    return error.name === "NotAllowedError" || error.name === "AbortError" ? "" : error.message;
  }
  const unreachable = error instanceof TypeError || error instanceof ConnectionLostError ||
    error instanceof AccountError && error.status >= 500;
  if (unreachable) return texts.unreachable;
  return error instanceof Error ? error.message : String(error);
}
