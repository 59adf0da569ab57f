/** Users who sign in without an account. */
import type { SynclineClient } from "../client.ts";

/**
 * Signs in as a new user without an address. Signing up afterwards, in any way, keeps the user's id and data. `ownAccount` has the
 * field `anonymous`.
 *
 * @throws `AccountError`: `anonymous_disabled`, `rate_limited`
 */
export async function signInAnonymously(client: SynclineClient): Promise<void> {
  await client.auth.signInAt("anonymous", {});
}
