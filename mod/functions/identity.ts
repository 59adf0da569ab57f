/** Who calls a function, and how much of that a run looked at. */

/** The caller of a function. Anonymous callers are all the same caller. */
export interface Identity {
  /** `user:<id>`, `admin:<id>`, or `null` for anonymous. Keys replay records and principal-scoped queries. */
  readonly principal: string | null;
  readonly userId: string | null;
  readonly adminId: string | null;
  /** `null` for anonymous callers and for identities of external tokens. */
  readonly sessionId: string | null;
  /** What `ctx.auth.identity()` shows the app beside the ids, such as claims of an external token. */
  readonly claims?: Record<string, unknown>;
}

/** The caller without credentials. */
export const anonymous: Identity = { principal: null, userId: null, adminId: null, sessionId: null };

/**
 * What a query's run read of the auth context (SH2):
 * nothing, the principal's id (or that there is none), or the session id.
 */
export type AuthScope = "nothing" | "principal" | "session";
