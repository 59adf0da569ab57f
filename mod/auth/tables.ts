/** The tables of accounts. Secrets are hashes in tables of their own, which app code cannot read. */
import { z } from "zod";
import { adminRoles } from "../functions/admin_roles.ts";
import {
  createFunctions,
  createSystemFunctions,
  type DataModelOf,
  defineTable,
  type DocumentOf,
  type Id,
  id,
  type MutationCtx,
  type QueryCtx,
  type Schema,
} from "../functions/api/service.ts";
import { keyKinds } from "../functions/identity.ts";

/** Times are milliseconds since the epoch. */
const instant = z.number();

export const tables = {
  /** Users. A user of an external issuer may have no address. */
  _users: defineTable({
    /** Normalized; unique. */
    email: z.string().optional(),
    emailVerified: z.boolean(),
    name: z.string().optional(),
    /** The app's profile; its fields are defined in the app's `auth.ts`. */
    profile: z.record(z.string(), z.unknown()).optional(),
  }).index("by_email", ["email"])
    .searchIndex("search_email", { searchField: "email" }).searchIndex("search_name", {
      searchField: "name",
    }),

  /** Users who signed in without an account. */
  _anonymous_users: defineTable({
    user: id("_users"),
    /** When to check whether the user has a session. */
    checkAt: instant,
    /** Whether the user had none at the last check. Such a user is deleted at `checkAt`. */
    leaving: z.boolean(),
  }).index("by_user", ["user"]).index("by_check", ["checkAt"]),

  /** Administrators, who are not users. */
  _admins: defineTable({
    /** Normalized; unique. */
    email: z.string(),
    /** Absent for owners created before there were roles. */
    role: z.enum(adminRoles).optional(),
  }).index("by_email", ["email"]),

  /** Sessions. Deleting a row ends the session immediately. */
  _sessions: defineTable({
    /** A session belongs to a user or an administrator. */
    user: id("_users").optional(),
    admin: id("_admins").optional(),
    /** Extended by each refresh, except for impersonation sessions. */
    expiresAt: instant,
    refreshedAt: instant,
    impersonatedBy: id("_admins").optional(),
    /** The administrator's own session; this one ends with it. */
    impersonatorSession: z.string().optional(),
    userAgent: z.string().optional(),
    /** Client address at the last sign-in or refresh; stored for administrators only. */
    address: z.string().optional(),
    /** When a second factor was last proved in it. */
    factorAt: instant.optional(),
    /** When the account's password was last confirmed in it, after the sign-in. */
    confirmedAt: instant.optional(),
  }).index("by_user", ["user"]).index("by_admin", ["admin"]).index("by_expiry", ["expiresAt"])
    .index("by_impersonator", ["impersonatorSession"]),

  /** Devices that accounts signed in from, in words. */
  _devices: defineTable({
    /** Id of the user or administrator. */
    owner: z.string(),
    /** Browser and system, such as `Firefox on Linux`. */
    name: z.string(),
    lastUsedAt: instant,
  }).index("by_owner", ["owner", "name"]),

  /** Argon2id hashes, as PHC strings. */
  _passwords: defineTable({
    /** Id of the user or administrator. */
    owner: z.string(),
    hash: z.string(),
  }).index("by_owner", ["owner"]),

  _refresh_tokens: defineTable({
    session: id("_sessions"),
    family: z.string(),
    generation: z.int(),
    hash: z.string(),
    /** Expiry of the session. Rows whose session row was deleted manually are swept by it. */
    expiresAt: instant,
    /** Rotations within the grace time, oldest first: replaced generation, time, and attempt. */
    rotations: z.array(z.object({ generation: z.int(), at: instant, attempt: z.string().optional() })),
  }).index("by_family", ["family"]).index("by_session", ["session"]).index("by_expiry", ["expiresAt"]),

  /** Codes and links that were mailed and not used yet. */
  _codes: defineTable({
    kind: z.enum(["verify", "reset", "magic"]),
    /** Normalized recipient. */
    email: z.string(),
    /** The user whose address this becomes, for changes of address. */
    changeFor: id("_users").optional(),
    tokenHash: z.string(),
    /** Absent once the code is burned or replaced; the link remains valid. */
    codeHash: z.string().optional(),
    attemptsLeft: z.int(),
    expiresAt: instant,
  }).index("by_target", ["kind", "email"]).index("by_token", ["tokenHash"])
    .index("by_change", ["changeFor"]).index("by_expiry", ["expiresAt"]),

  /** Confirmed authenticator apps (TOTP), at most one for each account. */
  _totp: defineTable({
    /** Id of the user or administrator. */
    owner: z.string(),
    /** The shared secret, encrypted with the server's key. */
    secret: z.string(),
    /** Time step of the newest accepted code. Codes of this step and of earlier ones are refused. */
    lastStep: z.int(),
    lastUsedAt: instant,
  }).index("by_owner", ["owner"]),

  /** Authenticator apps whose first code was not entered yet, at most one for each account. */
  _totp_enrolments: defineTable({
    /** Id of the user or administrator. */
    owner: z.string(),
    /** Encrypted like that of `_totp`. */
    secret: z.string(),
    expiresAt: instant,
  }).index("by_owner", ["owner"]).index("by_expiry", ["expiresAt"]),

  /** Unused recovery codes. */
  _recovery_codes: defineTable({
    /** Id of the user or administrator. */
    owner: z.string(),
    /** Keyed hash. */
    hash: z.string(),
  }).index("by_owner", ["owner", "hash"]),

  /** Passkeys. */
  _passkeys: defineTable({
    /** Id of the user or administrator. */
    owner: z.string(),
    credentialId: z.string(),
    /** COSE key, base64url. */
    publicKey: z.string(),
    /** Signature counter at the last use; 0 if the authenticator has none. */
    counter: z.int(),
    transports: z.array(z.string()),
    /** Whether it can be copied to other devices of the user; fixed. */
    backupEligible: z.boolean(),
    backedUp: z.boolean(),
    name: z.string(),
    lastUsedAt: instant.optional(),
  }).index("by_credential", ["credentialId"]).index("by_owner", ["owner"]),

  /** API keys and deploy keys. Deleting a row revokes the key immediately. */
  _api_keys: defineTable({
    /** Keyed hash of the key, which is shown once and not stored. */
    hash: z.string(),
    /** The first characters of the key. */
    shown: z.string(),
    name: z.string(),
    /** The user as whom it acts; absent for services. */
    user: id("_users").optional(),
    kinds: z.array(z.enum(keyKinds)),
    /** Patterns of paths. */
    functions: z.array(z.string()),
    /** Set for a deploy key, which calls no functions. */
    deploy: z.boolean().optional(),
    expiresAt: instant.optional(),
    /** Id of the user or administrator, or `command line`. */
    createdBy: z.string(),
    lastUsedAt: instant.optional(),
  }).index("by_hash", ["hash"]).index("by_user", ["user"]),

  /** Used challenges of passkeys, until they expire. */
  _used_challenges: defineTable({
    hash: z.string(),
    expiresAt: instant,
  }).index("by_hash", ["hash"]).index("by_expiry", ["expiresAt"]),

  /** Sign-ins that wait for a second factor. */
  _sign_in_challenges: defineTable({
    /** Id of the user or administrator. */
    owner: z.string(),
    tokenHash: z.string(),
    attemptsLeft: z.int(),
    expiresAt: instant,
    /** For the app's `onSignIn`, which runs at the end; absent for administrators. */
    event: z.object({
      by: z.enum(["password", "mail", "provider", "token", "administrator", "passkey", "anonymous"]),
      provider: z.string().optional(),
      issuer: z.string().optional(),
      claims: z.record(z.string(), z.unknown()).optional(),
    }).optional(),
  }).index("by_owner", ["owner"]).index("by_token", ["tokenHash"]).index("by_expiry", ["expiresAt"]),

  /** External identities of users. A subject of an issuer belongs to one user permanently. */
  _identities: defineTable({
    issuer: z.string(),
    subject: z.string(),
    user: id("_users"),
    /** Configured name of the provider; absent for tokens of an external issuer. */
    provider: z.string().optional(),
    /** Verified details at the last use, shown to the user. */
    email: z.string().optional(),
    name: z.string().optional(),
  }).index("by_subject", ["issuer", "subject"]).index("by_user", ["user"]),

  /** Pending provider sign-ins. */
  _oauth_flows: defineTable({
    stateHash: z.string(),
    provider: z.string(),
    /** Final redirect URL in the app. */
    redirectTo: z.string(),
    /** Callback URL for the provider. */
    callback: z.string(),
    /** State by which the client recognizes the result. */
    appState: z.string().optional(),
    expiresAt: instant,
    /** The session that links an identity, instead of signing in. */
    linkFor: id("_sessions").optional(),
  }).index("by_state", ["stateHash"]).index("by_expiry", ["expiresAt"]),

  /** Returned identities that the client has not linked or signed in with yet. */
  _brought_identities: defineTable({
    tokenHash: z.string(),
    /** The session that links it; absent for a sign-in. */
    session: id("_sessions").optional(),
    provider: z.string(),
    issuer: z.string(),
    subject: z.string(),
    email: z.string().optional(),
    name: z.string().optional(),
    /** Claims of the provider, and whether it may link by address; for a sign-in. */
    signUp: z.object({ claims: z.record(z.string(), z.unknown()), linkByEmail: z.boolean() }).optional(),
    expiresAt: instant,
  }).index("by_token", ["tokenHash"]).index("by_expiry", ["expiresAt"]),
};

/** The account that a row belongs to. */
export type Owner = { readonly user: Id<"_users"> } | { readonly admin: Id<"_admins"> };

export function idOf(owner: Owner): Id<"_users"> | Id<"_admins"> {
  return "user" in owner ? owner.user : owner.admin;
}

export type AuthModel = DataModelOf<Schema<typeof tables>>;
export type AuthDoc<Table extends keyof AuthModel & string> = DocumentOf<AuthModel, Table>;
export type AuthQueryCtx = QueryCtx<AuthModel>;
export type AuthMutationCtx = MutationCtx<AuthModel>;

/** Function builders whose `ctx.db` knows these tables. */
export const { query, mutation, internalQuery, internalMutation } = createFunctions(
  { tables } satisfies Schema<typeof tables>,
);

/** Builders of administrator functions and of functions that read all tables. */
export const { adminQuery, adminMutation, systemMutation } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
