/**
 * The tables of accounts. Secrets stand apart from what they belong to: `_passwords`, `_refresh_tokens` and `_codes` hold
 * hashes only, and no code of an app can read them.
 */
import { z } from "zod";
import {
  createFunctions,
  createSystemFunctions,
  type DataModelOf,
  defineTable,
  type DocumentOf,
  id,
  type MutationCtx,
  type QueryCtx,
  type Schema,
} from "../functions/api/service.ts";

/** Instants are milliseconds since the epoch. */
const instant = z.number();

export const tables = {
  /** People. A user of an external issuer may have no address. */
  _users: defineTable({
    /** Normalized; unique. */
    email: z.string().optional(),
    emailVerified: z.boolean(),
    name: z.string().optional(),
    /** What the app keeps of them; which fields that are is for its `auth.ts` to say. */
    profile: z.record(z.string(), z.unknown()).optional(),
  }).index("by_email", ["email"])
    .searchIndex("search_email", { searchField: "email" }).searchIndex("search_name", {
      searchField: "name",
    }),

  /** Operators of this server. They are no users. */
  _admins: defineTable({
    /** Normalized; unique. */
    email: z.string(),
  }).index("by_email", ["email"]),

  /** Who is signed in. Deleting a row ends the session at once, whoever deletes it. */
  _sessions: defineTable({
    /** A session has a user or an administrator. */
    user: id("_users").optional(),
    admin: id("_admins").optional(),
    /** Moves with each refresh, except when an administrator impersonates the user. */
    expiresAt: instant,
    refreshedAt: instant,
    impersonatedBy: id("_admins").optional(),
    /** The administrator's own session, with which this one ends. */
    impersonatorSession: z.string().optional(),
    userAgent: z.string().optional(),
    /** Where the administrator was at the last sign-in or refresh; of users it is not kept. */
    address: z.string().optional(),
  }).index("by_user", ["user"]).index("by_admin", ["admin"]).index("by_expiry", ["expiresAt"])
    .index("by_impersonator", ["impersonatorSession"]),

  /** Argon2id hashes, as PHC strings. */
  _passwords: defineTable({
    /** Id of a user or an administrator. */
    owner: z.string(),
    hash: z.string(),
  }).index("by_owner", ["owner"]),

  /** The newest refresh token of each session. */
  _refresh_tokens: defineTable({
    session: id("_sessions"),
    family: z.string(),
    generation: z.int(),
    hash: z.string(),
    /** The session's; rows whose session went away by itself are swept by it. */
    expiresAt: instant,
    /** Rotations within the grace time, oldest first: the generation that was replaced, when, and for which attempt. */
    rotations: z.array(z.object({ generation: z.int(), at: instant, attempt: z.string().optional() })),
  }).index("by_family", ["family"]).index("by_session", ["session"]).index("by_expiry", ["expiresAt"]),

  /** Codes and links that were mailed and not used yet. */
  _codes: defineTable({
    kind: z.enum(["verify", "reset", "magic"]),
    /** Normalized address the mail went to. */
    email: z.string(),
    /** Whose address this becomes; only when a user changes it. */
    changeFor: id("_users").optional(),
    tokenHash: z.string(),
    /** Missing once the code is burned or a newer one was sent; the link goes on working. */
    codeHash: z.string().optional(),
    attemptsLeft: z.int(),
    expiresAt: instant,
  }).index("by_target", ["kind", "email"]).index("by_token", ["tokenHash"])
    .index("by_change", ["changeFor"]).index("by_expiry", ["expiresAt"]),

  /** Who a user is elsewhere: a subject of an issuer is one user for ever. */
  _identities: defineTable({
    issuer: z.string(),
    subject: z.string(),
    user: id("_users"),
    /** What the configuration calls the provider it came by; missing for tokens of an external issuer. */
    provider: z.string().optional(),
    /** What was verified there when it was last used, so that a person recognises it. */
    email: z.string().optional(),
    name: z.string().optional(),
  }).index("by_subject", ["issuer", "subject"]).index("by_user", ["user"]),

  /** Sign-ins at a provider that are under way. */
  _oauth_flows: defineTable({
    stateHash: z.string(),
    provider: z.string(),
    /** Where the browser goes in the end. */
    redirectTo: z.string(),
    /** Where the provider sends it before that. */
    callback: z.string(),
    expiresAt: instant,
    /** The session of the user who brings a further identity instead of signing in. */
    linkFor: id("_sessions").optional(),
  }).index("by_state", ["stateHash"]).index("by_expiry", ["expiresAt"]),

  /** Identities that signed-in users brought and have not confirmed yet. */
  _brought_identities: defineTable({
    tokenHash: z.string(),
    /** Whoever confirms it has to be in this session. */
    session: id("_sessions"),
    provider: z.string(),
    issuer: z.string(),
    subject: z.string(),
    email: z.string().optional(),
    name: z.string().optional(),
    expiresAt: instant,
  }).index("by_token", ["tokenHash"]).index("by_expiry", ["expiresAt"]),
};

export type AuthModel = DataModelOf<Schema<typeof tables>>;
export type AuthDoc<Table extends keyof AuthModel & string> = DocumentOf<AuthModel, Table>;
export type AuthQueryCtx = QueryCtx<AuthModel>;
export type AuthMutationCtx = MutationCtx<AuthModel>;

/** The function builders whose `ctx.db` knows these tables. */
export const { query, mutation, internalQuery, internalMutation } = createFunctions(
  { tables } satisfies Schema<typeof tables>,
);

/** The builders of what administrators call, and of what looks at all tables. */
export const { adminQuery, adminMutation, systemMutation } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
