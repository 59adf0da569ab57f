/** Passkeys: sign-in, registration and proof. The browser's own JSON methods convert options and answers. */
import { functionReference } from "../../protocol/function_reference.ts";
import type { SynclineClient } from "../client.ts";
import { act } from "./act.ts";

/** A passkey of the signed-in account. Times are milliseconds since the epoch. */
export interface OwnPasskey {
  readonly passkeyId: string;
  readonly name: string;
  readonly createdAt: number;
  /** `null` if it was never used. */
  readonly lastUsedAt: number | null;
  /** Whether it is backed up, and so survives the loss of the device. */
  readonly backedUp: boolean;
}

/** Reference for live queries of the account's passkeys, as in `client.subscribe(ownPasskeys, {}, show)`; `null` if no one is signed in. */
export const ownPasskeys = /* @__PURE__ */ functionReference<
  "query",
  Record<string, never>,
  OwnPasskey[] | null
>("_auth:listPasskeys");

interface BrowserOptions {
  readonly options: never;
  /** Whether a registration signs up an anonymous user. */
  readonly signUp?: boolean;
  /** Time to use them, in seconds. */
  readonly expiresIn: number;
}

/** Options of {@linkcode signInWithPasskey}. */
export interface PasskeySignInOptions {
  /** Offers passkeys in a field with `autocomplete="username webauthn"` instead of a dialog, and waits until the user chooses one. */
  readonly autofill?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Returns whether this browser supports passkeys or, with `autofill`, passkeys in a field. If it does not, hide the controls for
 * passkeys.
 */
export async function supportsPasskeys({ autofill = false } = {}): Promise<boolean> {
  const { PublicKeyCredential: api } = globalThis as Partial<typeof globalThis>;
  if (!api?.parseRequestOptionsFromJSON) return false;
  return !autofill || await api.isConditionalMediationAvailable?.() === true;
}

/**
 * Signs in with a passkey that the user chooses. Accounts with a second factor need no further step.
 *
 * @throws `AccountError`: `unknown_passkey`, `invalid_passkey`, `passkey_copied`, `invalid_challenge`. The browser throws a
 * `DOMException`: `NotAllowedError` if the user cancels, `AbortError` if another passkey prompt was opened or the signal aborted.
 */
export async function signInWithPasskey(
  client: SynclineClient,
  { autofill = false, signal }: PasskeySignInOptions = {},
): Promise<void> {
  for (;;) {
    const { options, expiresIn } = await act<BrowserOptions>(client, "startPasskeySignIn", {});
    // A field may wait for long: it gets a new challenge before the old one expires.
    const renewal = AbortSignal.timeout(expiresIn * 800);
    const get = () =>
      prompted((used) => ask(options, used, autofill), autofill ? [signal, renewal] : [signal]);
    try {
      return await client.auth.signInAt("passkey/verify", { response: await get() });
    } catch (error) {
      if (!autofill || !renewal.aborted || signal?.aborted || !isAbort(error)) throw error;
    }
  }
}

/**
 * Adds a passkey to the account. Pass `password` if the account has one and no factor was proved in the last ten minutes. Returns the
 * id of the passkey. An anonymous user signs up with it, and gets another session; then the id is `undefined`.
 *
 * @throws `FunctionError`: `invalid_credentials`, `factor_required`, `confirmation_required`, `email_not_verified`,
 * `passkey_exists`, `too_many_passkeys`, `passkeys_disabled`, `passkeys_unavailable`. `AccountError` with the same codes,
 * `signups_disabled`, `invalid_challenge` or `invalid_passkey` if the sign-up of an anonymous user fails. The browser throws a `DOMException`, such as
 * `InvalidStateError` if the device has a passkey of this account.
 */
export async function addPasskey(
  client: SynclineClient,
  { name, ...start }: { readonly name?: string; readonly password?: string } = {},
): Promise<string | undefined> {
  const { options, signUp } = await act<BrowserOptions>(client, "startPasskey", start);
  const response = await prompted((signal) =>
    navigator.credentials.create({
      publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
      signal,
    })
  );
  const passkey = { response, ...name && { name } };
  if (signUp) await client.auth.signInAt("passkey/signup", passkey);
  else return (await act<{ passkeyId: string }>(client, "addPasskey", passkey)).passkeyId;
}

/**
 * Proves a passkey in this session, after a function has thrown `factor_required`.
 *
 * @throws Like {@linkcode signInWithPasskey}, with `FunctionError` instead of `AccountError`.
 */
export async function provePasskey(client: SynclineClient): Promise<void> {
  const { options } = await act<BrowserOptions>(client, "startPasskeyProof", {});
  await act(client, "provePasskey", { response: await prompted((signal) => ask(options, signal)) });
}

/** Changes the name of a passkey. */
export async function renamePasskey(
  client: SynclineClient,
  change: { readonly passkeyId: string; readonly name: string },
): Promise<void> {
  await client.mutation("_auth:renamePasskey", { ...change });
}

/**
 * Removes a passkey from the account. The device keeps its copy, which no longer works.
 *
 * @throws `FunctionError`: `factor_required` unless a factor was proved in the last ten minutes, `last_way_in`
 */
export async function removePasskey(client: SynclineClient, passkeyId: string): Promise<void> {
  await act(client, "removePasskey", { passkeyId });
}

/** The last prompt. Browsers allow one open prompt at a time, also one that waits in a field. */
let pending: AbortController | null = null;

/** Opens a prompt after ending an open one. Returns the answer as JSON. */
async function prompted(
  open: (signal: AbortSignal) => Promise<Credential | null>,
  signals: readonly (AbortSignal | undefined)[] = [],
): Promise<unknown> {
  pending?.abort();
  pending = new AbortController();
  const given = [pending.signal, ...signals].filter((signal) => signal !== undefined);
  const credential = await open(AbortSignal.any(given));
  return (credential as PublicKeyCredential).toJSON();
}

function ask(options: never, signal: AbortSignal, autofill = false): Promise<Credential | null> {
  return navigator.credentials.get({
    publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
    signal,
    ...autofill && { mediation: "conditional" },
  });
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError");
}
