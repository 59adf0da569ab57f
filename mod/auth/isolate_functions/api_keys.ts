/** Rows of API keys and deploy keys. The keys themselves are created by main and never stored. Revoking deletes the row. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import type { Id } from "../../functions/api/service.ts";
import { type KeyKind, keyKinds } from "../../functions/identity.ts";
import { authLimits } from "../limits.ts";
import {
  adminMutation,
  adminQuery,
  type AuthDoc,
  type AuthMutationCtx,
  type AuthQueryCtx,
  internalMutation,
  internalQuery,
  mutation,
  query,
} from "../tables.ts";
import { refuseAnonymous } from "./anonymous_rows.ts";
import { type CredentialOwner, credentialOwner } from "./factors/own_factors.ts";
import { refuseImpersonator, sessionToChange, signedInUser } from "./own_account.ts";
import { existing } from "./users.ts";

/** A key as main caches it. */
export interface ApiKeyRow {
  readonly keyId: Id<"_api_keys">;
  readonly userId: Id<"_users"> | null;
  readonly name: string;
  readonly kinds: KeyKind[];
  readonly functions: string[];
  readonly expiresAt: number | null;
  /** Whether it permits deploys and nothing else. */
  readonly deploy: boolean;
}

/** A key as its owner and administrators see it. */
export interface ApiKeyInfo extends ApiKeyRow {
  /** The first characters of the key. */
  readonly shown: string;
  readonly createdAt: number;
  /** Id of the user or administrator, or `command line`. */
  readonly createdBy: string;
  readonly lastUsedAt: number | null;
}

const newKey = {
  name: z.string(),
  kinds: z.array(z.enum(keyKinds)),
  functions: z.array(z.string()),
  expiresAt: z.number().optional(),
  hash: z.string(),
  shown: z.string(),
  now: z.number(),
};

/** Returns the id of the key with a hash, or `null`. */
export const findApiKeyId = internalQuery({
  args: { hash: z.string() },
  handler: async (ctx, { hash }): Promise<Id<"_api_keys"> | null> =>
    (await ctx.db.query("_api_keys").withIndex("by_hash", (q) => q.eq("hash", hash)).unique())?._id ?? null,
});

/** Returns a key whose user, if it has one, exists; otherwise `null`. */
export const findApiKey = internalQuery({
  args: { keyId: z.string() },
  handler: async (ctx, { keyId }): Promise<ApiKeyRow | null> => {
    const id = ctx.db.normalizeId("_api_keys", keyId);
    const key = id === null ? null : await ctx.db.get(id);
    if (key === null || (key.user !== undefined && await ctx.db.get(key.user) === null)) return null;
    return rowOf(key);
  },
});

export const noteApiKeyUse = internalMutation({
  args: { keyId: z.string(), now: z.number() },
  handler: async (ctx, { keyId, now }): Promise<null> => {
    const id = ctx.db.normalizeId("_api_keys", keyId);
    if (id !== null && await ctx.db.get(id) !== null) await ctx.db.patch(id, { lastUsedAt: now });
    return null;
  },
});

/** Stores a key of an administrator, which acts as a user or as itself, or deploys. Throws `user_not_found`, `too_many_keys`, `invalid_expiry`. */
export const addApiKey = internalMutation({
  args: { ...newKey, deploy: z.boolean().optional(), userId: z.string().nullable(), createdBy: z.string() },
  handler: async (ctx, { userId, ...key }): Promise<Id<"_api_keys">> => {
    const user = userId === null ? undefined : (await existing(ctx, userId))._id;
    return await insertKey(ctx, { ...key, user });
  },
});

/** Returns the calling user, who may add a key under the conditions of a second factor. */
export const keyOwner = internalMutation({
  args: { mail: z.boolean(), now: z.number() },
  handler: async (ctx, args): Promise<CredentialOwner> => {
    await refuseAnonymous(ctx, signedInUser(ctx));
    return await credentialOwner(ctx, args);
  },
});

/** Stores a key of the calling user. */
export const addOwnApiKey = internalMutation({
  args: newKey,
  handler: async (ctx, key): Promise<Id<"_api_keys">> => {
    await sessionToChange(ctx);
    const user = signedInUser(ctx);
    return await insertKey(ctx, { ...key, user, createdBy: user });
  },
});

/** Returns the caller's keys, newest first; `null` for anonymous callers and administrators. */
export const listOwnApiKeys = query({
  args: {},
  handler: async (ctx): Promise<ApiKeyInfo[] | null> => {
    const user = ctx.auth.userId();
    return user === null ? null : (await keysOf(ctx, user)).map(infoOf).reverse();
  },
});

/** Revokes one of the caller's keys. */
export const revokeOwnApiKey = mutation({
  args: { keyId: z.string() },
  handler: async (ctx, { keyId }): Promise<null> => {
    await refuseImpersonator(ctx);
    const user = signedInUser(ctx);
    const key = await existingKey(ctx, keyId);
    if (key.user !== user) throw noSuchKey();
    await ctx.db.delete(key._id);
    return null;
  },
});

/** Returns all keys, newest first. If there are too many, it omits the oldest keys that act as users. */
export const listApiKeys = adminQuery({
  args: {},
  handler: async (ctx): Promise<ApiKeyInfo[]> => {
    const newest = await ctx.db.query("_api_keys").order("desc").take(authLimits.keysShownMax);
    const shown = new Set(newest.map(({ _id }) => _id));
    const older = (await keysOf(ctx, undefined)).reverse().filter(({ _id }) => !shown.has(_id));
    return [...newest, ...older].map(infoOf);
  },
});

/** Revokes a key. Its sockets are closed with the commit. */
export const revokeApiKey = adminMutation({
  args: { keyId: z.string() },
  handler: async (ctx, { keyId }): Promise<null> => {
    await ctx.db.delete((await existingKey(ctx, keyId))._id);
    return null;
  },
});

async function insertKey(
  ctx: AuthMutationCtx,
  { now, user, ...key }: Omit<AuthDoc<"_api_keys">, "_id" | "_creationTime" | "user" | "lastUsedAt"> & {
    readonly now: number;
    readonly user: Id<"_users"> | undefined;
  },
): Promise<Id<"_api_keys">> {
  if (key.expiresAt !== undefined && key.expiresAt <= now) {
    throw new UserError("invalid_expiry", "The key would have expired already");
  }
  const others = await keysOf(ctx, user);
  if (others.length >= authLimits.keysPerOwnerMax) {
    throw new UserError(
      "too_many_keys",
      `The limit of ${authLimits.keysPerOwnerMax} API keys is reached. Revoke one first`,
    );
  }
  return await ctx.db.insert("_api_keys", { ...key, ...(user !== undefined && { user }) });
}

/** Returns the keys of a user, or those without a user, oldest first. */
function keysOf(ctx: AuthQueryCtx, user: Id<"_users"> | undefined): Promise<AuthDoc<"_api_keys">[]> {
  return ctx.db.query("_api_keys").withIndex("by_user", (q) => q.eq("user", user))
    .take(authLimits.keysPerOwnerMax);
}

async function existingKey(ctx: AuthQueryCtx, keyId: string): Promise<AuthDoc<"_api_keys">> {
  const id = ctx.db.normalizeId("_api_keys", keyId);
  const key = id === null ? null : await ctx.db.get(id);
  if (key === null) throw noSuchKey();
  return key;
}

function noSuchKey(): UserError {
  return new UserError("key_not_found", "API key not found");
}

function rowOf(key: AuthDoc<"_api_keys">): ApiKeyRow {
  const { _id: keyId, user: userId = null, name, kinds, functions, expiresAt = null, deploy = false } = key;
  return { keyId, userId, name, kinds, functions, expiresAt, deploy };
}

function infoOf(key: AuthDoc<"_api_keys">): ApiKeyInfo {
  const { _creationTime: createdAt, shown, createdBy, lastUsedAt = null } = key;
  return { ...rowOf(key), shown, createdAt, createdBy, lastUsedAt };
}
