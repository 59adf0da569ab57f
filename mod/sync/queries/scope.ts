/** Who may share a result: the callers for whom all that a run read of the auth context is the same. */
import type { AuthScope, Identity } from "../../functions/identity.ts";
import { canonicalJson } from "../../protocol/canonical_json.ts";

/** Scopes from the widest audience to the narrowest. */
export const scopes = ["nothing", "principal", "session"] as const satisfies readonly AuthScope[];

/** The part of a caller that a scope looks at. Callers with equal keys share results of that scope. */
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

/** External tokens have no session; what the app sees of such a caller beside the principal are its claims. */
function sessionKey(identity: Identity): string {
  const principal = identity.principal ?? "";
  if (identity.sessionId !== null) return `${principal}\n${identity.sessionId}`;
  return identity.claims === undefined ? principal : `${principal}\n\n${canonicalJson(identity.claims)}`;
}
