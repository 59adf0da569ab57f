/** Deploy keys as documents; the keys themselves are made by main and never stored. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import type { Id } from "../../../functions/api/service.ts";
import { deployLimits } from "../../limits.ts";
import { adminMutation, adminQuery, type DeployDoc, systemMutation, systemQuery } from "../tables.ts";

/** A key as it is shown: never its hash. */
export interface DeployKeyInfo {
  readonly keyId: Id<"_deploy_keys">;
  readonly name: string;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
}

/** All keys, revoked ones too, the newest first. */
export const list = adminQuery({
  args: {},
  handler: async (ctx): Promise<DeployKeyInfo[]> =>
    (await ctx.db.query("_deploy_keys").order("desc").take(2 * deployLimits.keysMax)).map(told),
});

/** Ends a key at once. */
export const revoke = adminMutation({
  args: { keyId: z.string() },
  handler: async (ctx, { keyId }): Promise<null> => {
    const id = ctx.db.normalizeId("_deploy_keys", keyId);
    const key = id === null ? null : await ctx.db.get(id);
    if (key === null) throw new UserError("key_not_found", "There is no such deploy key");
    if (key.revokedAt === undefined) await ctx.db.patch(key._id, { revokedAt: Date.now() });
    return null;
  },
});

/** Notes a new key. Throws `name_in_use`, because people revoke keys by their names, and `too_many_keys`. */
export const add = systemMutation({
  args: { name: z.string(), hash: z.string(), createdBy: z.string() },
  handler: async (ctx, key): Promise<Id<"_deploy_keys">> => {
    const keys = await ctx.db.query("_deploy_keys").collect();
    const live = keys.filter(({ revokedAt }) => revokedAt === undefined);
    if (live.some(({ name }) => name === key.name)) {
      throw new UserError("name_in_use", `There is a deploy key "${key.name}" already: revoke it first`);
    }
    if (live.length >= deployLimits.keysMax) {
      throw new UserError("too_many_keys", `There are ${live.length} deploy keys already: revoke one first`);
    }
    // Of those that are revoked the newest are remembered.
    const revoked = keys.filter(({ revokedAt }) => revokedAt !== undefined);
    for (const { _id } of revoked.slice(0, -deployLimits.keysMax)) await ctx.db.delete(_id);
    return await ctx.db.insert("_deploy_keys", key);
  },
});

/** The live key with a hash; `null` when there is none. */
export const find = systemQuery({
  args: { hash: z.string() },
  handler: async (ctx, { hash }): Promise<DeployKeyInfo | null> => {
    const key = await ctx.db.query("_deploy_keys").withIndex("by_hash", (q) => q.eq("hash", hash)).unique();
    return key === null || key.revokedAt !== undefined ? null : told(key);
  },
});

/** Notes that a key was used. */
export const used = systemMutation({
  args: { keyId: z.string() },
  handler: async (ctx, { keyId }): Promise<null> => {
    const id = ctx.db.normalizeId("_deploy_keys", keyId);
    if (id !== null && await ctx.db.get(id) !== null) await ctx.db.patch(id, { lastUsedAt: Date.now() });
    return null;
  },
});

function told(key: DeployDoc<"_deploy_keys">): DeployKeyInfo {
  const { _id: keyId, _creationTime: createdAt, name, createdBy, lastUsedAt, revokedAt } = key;
  return { keyId, createdAt, name, createdBy, lastUsedAt: lastUsedAt ?? null, revokedAt: revokedAt ?? null };
}
