/** Transactions of administrator operations on users: passwords, cascading deletion, and the app's profile. */
import { z } from "zod";
import { type AnyDataModel, type Id, id, type SystemMutationCtx } from "../../functions/api/service.ts";
import { authLimits } from "../limits.ts";
import {
  type AuthModel,
  type AuthMutationCtx,
  internalMutation,
  internalQuery,
  systemMutation,
} from "../tables.ts";
import { dropKeys, removeUser, setPasswordHash, userByEmail } from "./account_rows.ts";
import { isAnonymous } from "./anonymous_rows.ts";
import { insertUser, userCreated } from "./hooks.ts";
import { endSessionsOf } from "./session_rows.ts";
import { UserError } from "../../errors.ts";

/** Profile fields; `null` removes one. The app defines which exist. */
export const profileSchema = z.record(z.string(), z.unknown());

/** Creates a user; `null` if the address is taken. */
export const createUser = internalMutation({
  args: {
    email: z.string(),
    name: z.string().optional(),
    emailVerified: z.boolean(),
    passwordHash: z.string().nullable(),
    profile: profileSchema.optional(),
  },
  handler: async (ctx, args): Promise<Id<"_users"> | null> => {
    const { email, name, emailVerified, passwordHash, profile } = args;
    if (await userByEmail(ctx, email) !== null) return null;
    const user = await insertUser(ctx, { email, emailVerified, ...(name !== undefined && { name }) });
    if (profile !== undefined) await setProfile(ctx, user, profile);
    if (passwordHash !== null) await setPasswordHash(ctx, user, passwordHash);
    await userCreated(ctx, { user, by: "administrator" });
    return user;
  },
});

/** Sets a user's password and ends their sessions. Returns their number; `null` if the user does not exist. */
export const setUserPassword = internalMutation({
  args: { userId: z.string(), passwordHash: z.string() },
  handler: async (ctx, { userId, passwordHash }): Promise<number | null> => {
    const user = ctx.db.normalizeId("_users", userId);
    if (user === null || await ctx.db.get(user) === null) return null;
    await setPasswordHash(ctx, user, passwordHash);
    return await endSessionsOf(ctx, { user });
  },
});

/** Returns a user's address: `null` for a user without one, `undefined` if the user does not exist. */
export const addressOf = internalQuery({
  args: { userId: z.string() },
  handler: async (ctx, { userId }): Promise<{ email: string | null } | null> => {
    const id = ctx.db.normalizeId("_users", userId);
    const user = id === null ? null : await ctx.db.get(id);
    return user === null ? null : { email: user.email ?? null };
  },
});

interface DeletionStep {
  /** Number of the app's documents deleted in this step. */
  readonly deleted: number;
  /** Whether the user is deleted; otherwise more documents remain. */
  readonly done: boolean;
}

/**
 * One step of deleting a user, the last one with the user itself. Returns `null` if the user does not exist or, with
 * `anonymousOnly`, has an account.
 */
export const deleteUserStep = systemMutation({
  args: { userId: id("_users"), anonymousOnly: z.boolean().default(false) },
  handler: async (ctx, { userId, anonymousOnly }): Promise<DeletionStep | null> => {
    const user = await ctx.db.get(userId);
    if (user === null || (anonymousOnly && !await isAnonymous(ctx, userId))) return null;
    await endSessionsOf(ctx, { user: userId });
    await dropKeys(ctx, userId);
    const { deleted, more } = await deleteTheirs(ctx, userId);
    if (!more) await removeUser(ctx, user);
    return { deleted, done: !more };
  },
});

async function deleteTheirs(
  ctx: SystemMutationCtx<AuthModel>,
  user: Id<"_users">,
): Promise<{ readonly deleted: number; readonly more: boolean }> {
  // Tables of the app; only their names are known here.
  const { db } = ctx as unknown as SystemMutationCtx<AnyDataModel>;
  const max = authLimits.cascadeRowsMax;
  let deleted = 0;
  for (const { name, deletedWithUser: index, indexes } of ctx.inspector.tables()) {
    const field = indexes.find((candidate) => candidate.name === index)?.fields[0];
    if (index === null || field === undefined) continue;
    const rows = await db.query(name).withIndex(index, (q) => q.eq(field as never, user)).take(max - deleted);
    for (const { _id } of rows) await db.delete(_id);
    deleted += rows.length;
    if (deleted >= max) return { deleted, more: true };
  }
  return { deleted, more: false };
}

/** Changes fields of a user's profile. Throws `invalid_profile` with the validation issues. */
export async function setProfile(
  ctx: AuthMutationCtx,
  user: Id<"_users">,
  changes: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { inspector } = ctx as unknown as SystemMutationCtx<AuthModel>;
  const stored = await ctx.db.get(user);
  if (stored === null) return;
  const { _id, _creationTime, ...fields } = stored;
  const profile = Object.fromEntries(
    Object.entries({ ...stored.profile, ...changes }).filter(([, value]) => value !== null),
  );
  const known = inspector.newProfile({ provider: null, issuer: null, claims: {} }) !== undefined;
  const issues = known
    ? inspector.issues("_users", { ...fields, profile })
    : [{ path: ["profile"], message: "The app defines no user profile" }];
  if (issues.length > 0) {
    const [first] = issues;
    const message = `${first?.path.join(".")}: ${first?.message}`;
    throw new UserError("invalid_profile", message, { issues: [...issues] });
  }
  await ctx.db.patch(user, { profile });
}
