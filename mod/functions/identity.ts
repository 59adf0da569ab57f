/** The identity of a caller, and how much of it a run read. */

/** The caller of a function. All anonymous callers are equal. */
export interface Identity {
  /** `user:<id>`, `admin:<id>`, or `null` if anonymous. Part of the key of replay records and principal-scoped queries. */
  readonly principal: string | null;
  readonly userId: string | null;
  readonly adminId: string | null;
  /** `null` for anonymous callers and identities of external tokens. */
  readonly sessionId: string | null;
  /** Additional data of `ctx.auth.identity()`, such as claims of an external token. */
  readonly claims?: Record<string, unknown>;
}

export const anonymous: Identity = { principal: null, userId: null, adminId: null, sessionId: null };

/** The part of the auth context that a query run read (SH2): nothing, the principal, or the session. */
export type AuthScope = "nothing" | "principal" | "session";
