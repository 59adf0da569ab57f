/** Rows of deploy keys. The keys themselves are created by the main process and never stored. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import type { Id } from "../../../functions/api/service.ts";
import { deployLimits } from "../../limits.ts";
import { adminMutation, adminQuery, type DeployDoc, systemMutation, systemQuery } from "../tables.ts";

/** Public fields of a key, without its hash. */
export interface DeployKeyInfo {
  readonly keyId: Id<"_deploy_keys">;
  readonly name: string;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
}

/** Lists all keys including revoked ones, newest first. */
export const list = adminQuery({
  args: {},
  handler: async (ctx): Promise<DeployKeyInfo[]> =>
    (await ctx.db.query("_deploy_keys").order("desc").take(2 * deployLimits.keysMax)).map(keyInfo),
});

/** Revokes a key immediately. */
export const revoke = adminMutation({
  args: { keyId: z.string() },
  handler: async (ctx, { keyId }): Promise<null> => {
    const id = ctx.db.normalizeId("_deploy_keys", keyId);
    const key = id === null ? null : await ctx.db.get(id);
    if (key === null) throw new UserError("key_not_found", "Deploy key not found");
    if (key.revokedAt === undefined) await ctx.db.patch(key._id, { revokedAt: Date.now() });
    return null;
  },
});

/** Inserts a key. Throws `name_in_use`, because keys are revoked by name, and `too_many_keys`. */
export const add = systemMutation({
  args: { name: z.string(), hash: z.string(), createdBy: z.string() },
  handler: async (ctx, key): Promise<Id<"_deploy_keys">> => {
    const keys = await ctx.db.query("_deploy_keys").collect();
    const live = keys.filter(({ revokedAt }) => revokedAt === undefined);
    if (live.some(({ name }) => name === key.name)) {
      throw new UserError("name_in_use", `Deploy key "${key.name}" already exists. Revoke it first`);
    }
    if (live.length >= deployLimits.keysMax) {
      throw new UserError(
        "too_many_keys",
        `The limit of ${live.length} deploy keys is reached. Revoke one first`,
      );
    }
    // Only the newest revoked keys are kept.
    const revoked = keys.filter(({ revokedAt }) => revokedAt !== undefined);
    for (const { _id } of revoked.slice(0, -deployLimits.keysMax)) await ctx.db.delete(_id);
    return await ctx.db.insert("_deploy_keys", key);
  },
});

/** Returns the active key with a hash, or `null`. */
export const find = systemQuery({
  args: { hash: z.string() },
  handler: async (ctx, { hash }): Promise<DeployKeyInfo | null> => {
    const key = await ctx.db.query("_deploy_keys").withIndex("by_hash", (q) => q.eq("hash", hash)).unique();
    return key === null || key.revokedAt !== undefined ? null : keyInfo(key);
  },
});

/** Records the use of a key. */
export const used = systemMutation({
  args: { keyId: z.string() },
  handler: async (ctx, { keyId }): Promise<null> => {
    const id = ctx.db.normalizeId("_deploy_keys", keyId);
    if (id !== null && await ctx.db.get(id) !== null) await ctx.db.patch(id, { lastUsedAt: Date.now() });
    return null;
  },
});

function keyInfo(key: DeployDoc<"_deploy_keys">): DeployKeyInfo {
  const { _id: keyId, _creationTime: createdAt, name, createdBy, lastUsedAt, revokedAt } = key;
  return { keyId, createdAt, name, createdBy, lastUsedAt: lastUsedAt ?? null, revokedAt: revokedAt ?? null };
}
