/** What a browser brings from a provider, on its way to the user it is to be linked with. */
import { randomBytes } from "node:crypto";
import type { AccountParts } from "../accounts.ts";
import type { BroughtIdentity } from "../isolate_functions/identities/identity_rows.ts";
import { system } from "../system_calls.ts";

/** Keeps what a browser brought until it is confirmed. Returns what confirms it; `null` when the session has ended. */
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
