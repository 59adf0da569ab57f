/** Stores the identity a browser returned with, until it is linked. */
import { randomBytes } from "node:crypto";
import type { AccountParts } from "../accounts.ts";
import type { BroughtIdentity } from "../isolate_functions/identities/identity_rows.ts";
import { system } from "../system_calls.ts";

/** Stores the identity until it is confirmed. Returns the confirmation token; `null` if the session has ended. */
export async function keepBrought(
  { calls, hasher, now }: AccountParts,
  { session, provider, identity }: {
    readonly session: string;
    readonly provider: string;
    readonly identity: BroughtIdentity;
  },
): Promise<string | null> {
  const token = randomBytes(32).toString("base64url");
  const tokenHash = hasher.hash("brought", token);
  const kept = await calls.mutate(system.bringIdentity, {
    tokenHash,
    session,
    provider,
    identity,
    now: now(),
  });
  return kept ? token : null;
}
