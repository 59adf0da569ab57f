/** Second factors in components. */
import { useEffect, useMemo, useState } from "react";
import * as accounts from "../../account_features/mod.ts";
import type { FactorProof, NewTotp, OwnFactors, SignInChallenge } from "../../account_features/mod.ts";
import { present } from "../../bindings/calls.ts";
import { useClient } from "../provider.ts";
import { useQuery } from "../use_query.ts";

/** The second factors of the signed-in account, and the functions of `syncline/accounts` that change them. */
export interface SecondFactorView {
  /** `undefined` while it loads, `null` if no one is signed in. */
  readonly factors: OwnFactors | null | undefined;
  startTotp(options?: { readonly password?: string }): Promise<NewTotp>;
  confirmTotp(
    confirmation: { readonly enrolmentId: string; readonly code: string },
  ): Promise<readonly string[]>;
  proveFactor(proof: FactorProof): Promise<void>;
  removeTotp(): Promise<void>;
  renewRecoveryCodes(): Promise<readonly string[]>;
}

/** Returns the second factors of the signed-in account, for a page of settings. */
export function useSecondFactor(): SecondFactorView {
  const client = useClient();
  const factors = useQuery(accounts.ownFactors, {});
  return useMemo(() => ({
    factors,
    startTotp: (options) => accounts.startTotp(present(client), options),
    confirmTotp: (confirmation) => accounts.confirmTotp(present(client), confirmation),
    proveFactor: (proof) => accounts.proveFactor(present(client), proof),
    removeTotp: () => accounts.removeTotp(present(client)),
    renewRecoveryCodes: () => accounts.renewRecoveryCodes(present(client)),
  }), [client, factors]);
}

/** A sign-in in two steps. */
export interface SignInChallengeView {
  /** The sign-in that waits for a second factor; `null` while there is none. */
  readonly challenge: SignInChallenge | null;
  /** Runs the first step. Resolves to whether the user is signed in; otherwise `challenge` is set. Rejects with any other error. */
  attempt(signIn: () => Promise<unknown>): Promise<boolean>;
  /** The second step. Rejects with an `AccountError`; after `invalid_challenge` the first step has to be repeated. */
  finish(proof: FactorProof): Promise<void>;
  /** Returns to the first step. */
  cancel(): void;
}

/**
 * Returns the state of a sign-in form with a second step. Sign-ins with a provider in this or another window set `challenge` too.
 *
 * @example
 * ```tsx
 * const { auth } = useAuth();
 * const { challenge, attempt, finish } = useSignInChallenge();
 * if (challenge !== null) return <CodeForm onSubmit={(code) => finish({ code })} />;
 * return <PasswordForm onSubmit={(credentials) => attempt(() => auth.signIn(credentials))} />;
 * ```
 */
export function useSignInChallenge(): SignInChallengeView {
  const client = useClient();
  const [challenge, setChallenge] = useState<SignInChallenge | null>(null);
  useEffect(() =>
    client?.auth.onRefusal((error) => {
      const refused = accounts.challengeOf(error);
      if (refused !== null) setChallenge(refused);
    }), [client]);
  return useMemo(() => ({
    challenge,
    async attempt(signIn) {
      try {
        await signIn();
        return true;
      } catch (error) {
        const found = accounts.challengeOf(error);
        if (found === null) throw error;
        setChallenge(found);
        return false;
      }
    },
    async finish(proof) {
      if (challenge === null) throw new TypeError("No sign-in waits for a second factor");
      try {
        await accounts.finishSignIn(present(client), challenge, proof);
        setChallenge(null);
      } catch (error) {
        if ((error as { readonly code?: unknown }).code === "invalid_challenge") setChallenge(null);
        throw error;
      }
    },
    cancel: () => setChallenge(null),
  }), [client, challenge]);
}
