/** Passkeys in components. */
import { useEffect, useEffectEvent, useMemo } from "react";
import * as accounts from "../../account_features/mod.ts";
import type { OwnPasskey, PasskeySignInOptions } from "../../account_features/mod.ts";
import { AccountError } from "../../accounts/account_calls.ts";
import { present } from "../../bindings/calls.ts";
import { useClient } from "../provider.ts";
import { useQuery } from "../use_query.ts";

/** The passkeys of the signed-in account, and the functions of `syncline/accounts` for them. */
export interface PasskeysView {
  /** `undefined` while they load, `null` if no one is signed in. */
  readonly passkeys: readonly OwnPasskey[] | null | undefined;
  addPasskey(options?: { readonly name?: string; readonly password?: string }): Promise<string | undefined>;
  provePasskey(): Promise<void>;
  renamePasskey(change: { readonly passkeyId: string; readonly name: string }): Promise<void>;
  removePasskey(passkeyId: string): Promise<void>;
}

/** Returns the passkeys of the signed-in account, for a page of settings. */
export function usePasskeys(): PasskeysView {
  const client = useClient();
  const passkeys = useQuery(accounts.ownPasskeys, {});
  return useMemo(() => ({
    passkeys,
    addPasskey: (options) => accounts.addPasskey(present(client), options),
    provePasskey: () => accounts.provePasskey(present(client)),
    renamePasskey: (change) => accounts.renamePasskey(present(client), change),
    removePasskey: (passkeyId) => accounts.removePasskey(present(client), passkeyId),
  }), [client, passkeys]);
}

/**
 * Returns a function that signs in with a passkey. While the component is mounted, passkeys are also offered in its field with
 * `autocomplete="username webauthn"`; `onError` receives errors of sign-ins that begin there.
 *
 * @example
 * ```tsx
 * const signIn = usePasskeySignIn();
 * return <button type="button" onClick={() => signIn()}>Sign in with a passkey</button>;
 * ```
 */
export function usePasskeySignIn(
  { onError }: { readonly onError?: (error: AccountError) => void } = {},
): (options?: PasskeySignInOptions) => Promise<void> {
  const client = useClient();
  const report = useEffectEvent((error: unknown) => {
    // Canceled prompts, and browsers that cannot open one: the form has other ways to sign in.
    if (error instanceof AccountError) onError?.(error);
  });
  useEffect(() => {
    const ended = new AbortController();
    const offer = async () => {
      if (client === null || !await accounts.supportsPasskeys({ autofill: true }) || ended.signal.aborted) {
        return;
      }
      await accounts.signInWithPasskey(client, { autofill: true, signal: ended.signal });
    };
    offer().catch(report);
    return () => ended.abort();
  }, [client]);
  return useMemo(() => (options) => accounts.signInWithPasskey(present(client), options), [client]);
}
