/** Result scopes. Callers share a result if everything its run read from `ctx.auth` is the same for them. */
import type { AuthScope, Identity } from "../../functions/identity.ts";
import { canonicalJson } from "../../protocol/canonical_json.ts";

/** Scopes, widest first. */
export const scopes = ["nothing", "principal", "session"] as const satisfies readonly AuthScope[];

/** The part of the identity that a scope depends on. Callers with equal keys share results. */
export function scopeKey(scope: AuthScope, identity: Identity): string {
  switch (scope) {
    case "nothing":
      return "";
    case "principal":
      return identity.principal ?? "";
    case "session":
      return sessionKey(identity);
    default:
      return scope satisfies never;
  }
}

/** External tokens have no session, so their claims identify the caller. */
function sessionKey(identity: Identity): string {
  const principal = identity.principal ?? "";
  if (identity.sessionId !== null) return `${principal}\n${identity.sessionId}`;
  return identity.claims === undefined ? principal : `${principal}\n\n${canonicalJson(identity.claims)}`;
}
