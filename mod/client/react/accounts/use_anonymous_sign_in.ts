/** Anonymous sign-in in components. */
import { useMemo } from "react";
import { signInAnonymously } from "../../account_features/mod.ts";
import { present } from "../../bindings/calls.ts";
import { useClient } from "../provider.ts";

/**
 * Returns a function that signs in as a new user without an address. It rejects with an `AccountError`: `anonymous_disabled`,
 * `rate_limited`.
 *
 * @example
 * ```tsx
 * const tryIt = useAnonymousSignIn();
 * return <button type="button" onClick={() => tryIt()}>Try it without an account</button>;
 * ```
 */
export function useAnonymousSignIn(): () => Promise<void> {
  const client = useClient();
  return useMemo(() => () => signInAnonymously(present(client)), [client]);
}
