/** Second factors: authenticator apps and recovery codes. */
import { functionReference } from "../../protocol/function_reference.ts";
import type { SynclineClient } from "../client.ts";
import { act } from "./act.ts";

/** A sign-in that waits for a second factor. */
export interface SignInChallenge {
  readonly challenge: string;
  /** Time to finish the sign-in, in seconds. */
  readonly expiresIn: number;
}

/** A code of the authenticator app, or an unused recovery code. */
export type FactorProof = { readonly code: string } | { readonly recoveryCode: string };

/** The second factors of the signed-in account. Times are milliseconds since the epoch. */
export interface OwnFactors {
  /** The authenticator app; `null` if there is none. */
  readonly totp: { readonly enrolledAt: number; readonly lastUsedAt: number } | null;
  /** Number of unused recovery codes. */
  readonly recoveryCodes: number;
  /** When a second factor was last proved in this session; `null` if never. */
  readonly provedAt: number | null;
}

/** A new authenticator app, as its user needs it. */
export interface NewTotp {
  /** For {@linkcode confirmTotp}, within ten minutes. */
  readonly enrolmentId: string;
  /** To type in, base32. */
  readonly secret: string;
  /** An `otpauth:` URI, which a link on the phone opens. */
  readonly uri: string;
  /** The URI as a QR code: an SVG image. */
  readonly qrCode: string;
}

type NoArgs = Record<string, never>;
interface RecoveryCodes {
  readonly recoveryCodes: readonly string[];
}

/** Reference for live queries, as in `client.subscribe(ownFactors, {}, show)`; `null` if no one is signed in. */
export const ownFactors = /* @__PURE__ */ functionReference<"query", NoArgs, OwnFactors | null>(
  "_auth:listFactors",
);

/**
 * Returns the challenge of an error with the code `mfa_required`, which `client.auth` throws when an account has a second factor:
 * ask for a code and call {@linkcode finishSignIn}. Returns `null` for any other error.
 *
 * @example
 * ```ts
 * try {
 *   await client.auth.signIn({ email, password });
 * } catch (error) {
 *   const challenge = challengeOf(error);
 *   if (challenge === null) throw error;
 *   await finishSignIn(client, challenge, { code: await askForCode() });
 * }
 * ```
 */
export function challengeOf(error: unknown): SignInChallenge | null {
  const { code, data } = error instanceof Error ? error as { code?: unknown; data?: unknown } : {};
  const { challenge, expiresIn } = (code === "mfa_required" && data || {}) as Partial<SignInChallenge>;
  return typeof challenge === "string" && typeof expiresIn === "number" ? { challenge, expiresIn } : null;
}

/** Returns the proof that a user typed: six digits are a code of the app, anything else is a recovery code. */
export function proofOf(typed: string): FactorProof {
  const text = typed.replaceAll(/\s/g, "");
  return /^\d{6}$/.test(text) ? { code: text } : { recoveryCode: text };
}

/**
 * Finishes a sign-in with a second factor.
 *
 * @throws `AccountError`: `invalid_code` for a wrong or used code, which can be tried again, `invalid_challenge` if the sign-in has
 * expired or ended, `rate_limited`.
 */
export async function finishSignIn(
  client: SynclineClient,
  { challenge }: SignInChallenge,
  proof: FactorProof,
): Promise<void> {
  await client.auth.signInAt("mfa/verify", { challenge, ...proof });
}

/**
 * Starts to set up an authenticator app: show the QR code, and pass the first code to {@linkcode confirmTotp}. Omit `password` if
 * the account has none.
 *
 * @throws `FunctionError`: `invalid_credentials`, `factor_exists`, `totp_disabled`
 */
export async function startTotp(
  client: SynclineClient,
  options: { readonly password?: string } = {},
): Promise<NewTotp> {
  return await act(client, "startTotp", options);
}

/**
 * Confirms an authenticator app with its first code. From now on sign-ins need a code. Returns recovery codes: each works once
 * instead of a code. Show them to the user: they cannot be read again.
 *
 * @throws `FunctionError`: `invalid_code`, `invalid_enrolment`
 */
export async function confirmTotp(
  client: SynclineClient,
  confirmation: { readonly enrolmentId: string; readonly code: string },
): Promise<readonly string[]> {
  return (await act<RecoveryCodes>(client, "confirmTotp", confirmation)).recoveryCodes;
}

/**
 * Proves a second factor again in this session, after a function has thrown `factor_required`.
 *
 * @throws `FunctionError`: `invalid_code`, `rate_limited`
 */
export async function proveFactor(client: SynclineClient, proof: FactorProof): Promise<void> {
  await act(client, "proveFactor", proof);
}

/**
 * Removes the authenticator app and the recovery codes.
 *
 * @throws `FunctionError`: `factor_required` unless a factor was proved in the last ten minutes
 */
export async function removeTotp(client: SynclineClient): Promise<void> {
  await act(client, "removeTotp", {});
}

/**
 * Returns new recovery codes. Earlier ones no longer work.
 *
 * @throws `FunctionError`: `factor_required` unless a factor was proved in the last ten minutes
 */
export async function renewRecoveryCodes(client: SynclineClient): Promise<readonly string[]> {
  return (await act<RecoveryCodes>(client, "renewRecoveryCodes", {})).recoveryCodes;
}
