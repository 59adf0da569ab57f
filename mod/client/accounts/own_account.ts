/** The user's view of their own account: the functions at `_auth`. */
import { functionReference } from "../../protocol/function_reference.ts";

/** The signed-in account. */
export interface OwnAccount<Profile = Readonly<Record<string, unknown>>> {
  readonly userId: string;
  readonly email: string | null;
  readonly emailVerified: boolean;
  readonly name: string | null;
  readonly hasPassword: boolean;
  /** Whether the user signed in without an account. */
  readonly anonymous: boolean;
  /** The app's profile of the user (`profile` in its `auth.ts`); `null` if there is none. */
  readonly profile: Profile | null;
}

/** A session of the account. Times are milliseconds since the epoch. */
export interface OwnSession {
  readonly sessionId: string;
  /** Whether it is the calling session. */
  readonly current: boolean;
  readonly createdAt: number;
  readonly refreshedAt: number;
  readonly expiresAt: number;
  readonly userAgent: string | null;
  /** Browser or program in words, such as `Firefox`; `null` if unknown. */
  readonly browser: string | null;
  /** Operating system or kind of device in words, such as `Windows` or `iPhone`; `null` if unknown. */
  readonly system: string | null;
  /** Whether an administrator impersonates the user in it. */
  readonly impersonated: boolean;
}

/** An external identity of the account. */
export interface OwnIdentity {
  readonly identityId: string;
  /** Name of the provider; `null` for tokens of another issuer. */
  readonly provider: string | null;
  readonly issuer: string;
  readonly email: string | null;
  readonly name: string | null;
  /** Milliseconds since the epoch. */
  readonly linkedAt: number;
}

type NoArgs = Record<string, never>;

/** References for live queries, as in `client.subscribe(ownAccount, {}, show)`; `null` if no user is signed in. */
export const ownAccount = /* @__PURE__ */ functionReference<"query", NoArgs, OwnAccount | null>(
  "_auth:account",
);

/** The account's sessions, newest first; fails with `not_signed_in`. */
export const ownSessions = /* @__PURE__ */ functionReference<"query", NoArgs, OwnSession[]>(
  "_auth:listSessions",
);

/** The account's identities, oldest first; fails with `not_signed_in`. */
export const ownIdentities = /* @__PURE__ */ functionReference<"query", NoArgs, OwnIdentity[]>(
  "_auth:listIdentities",
);
