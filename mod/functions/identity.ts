/** The identity of a caller, and how much of it a run read. */

/** Kinds of calls that an API key may permit. */
export const keyKinds = ["query", "mutation", "action", "route"] as const;
export type KeyKind = (typeof keyKinds)[number];

/** The calls that an API key permits. */
export interface KeyScope {
  readonly kinds: readonly KeyKind[];
  /** Paths of functions, such as `messages:list`, or of routes, such as `POST /hook`. A `*` at the end matches any rest. */
  readonly functions: readonly string[];
}

/** The caller of a function. All anonymous callers are equal. */
export interface Identity {
  /**
   * `user:<id>`, `admin:<id>`, `key:<id>` for an API key without a user, or `null` if anonymous. Part of the key of replay
   * records and principal-scoped queries.
   */
  readonly principal: string | null;
  readonly userId: string | null;
  readonly adminId: string | null;
  /** The session or API key; `null` for anonymous callers and identities of external tokens. */
  readonly sessionId: string | null;
  /** Set if the caller uses an API key. */
  readonly key?: KeyScope & { readonly name: string };
  /** Additional data of `ctx.auth.identity()`, such as claims of an external token. */
  readonly claims?: Record<string, unknown>;
}

export const anonymous: Identity = { principal: null, userId: null, adminId: null, sessionId: null };

/** The part of the auth context that a query run read (SH2): nothing, the principal, or the session. */
export type AuthScope = "nothing" | "principal" | "session";
