/** Transactions of sign-up and sign-in. Hashes are computed in main and compared and stored here. */
import { z } from "zod";
import { type Id, id } from "../../functions/api/service.ts";
import { internalMutation, internalQuery } from "../tables.ts";
import { adminByEmail, passwordHashOf, removeUser, setPasswordHash, userByEmail } from "./account_rows.ts";
import { signIn as signInUser, signInAdmin } from "./factors/challenges.ts";
import { admitUser, userAdmitted } from "./hooks.ts";
import { newSessionSchema, type SignInResult } from "./session_rows.ts";

const ownerKind = z.enum(["user", "admin"]);

export interface Credential {
  /** Id of the account; `null` if it does not exist. */
  readonly owner: string | null;
  readonly hash: string | null;
  readonly emailVerified: boolean;
}

/**
 * Returns the hash to check a password against. Reads as many rows for unknown addresses, so that timing does not reveal
 * accounts. A mutation without writes, because query results are cached and password hashes must not be.
 */
export const findCredential = internalMutation({
  args: { kind: ownerKind, email: z.string() },
  handler: async (ctx, { kind, email }): Promise<Credential> => {
    const user = kind === "user" ? await userByEmail(ctx, email) : null;
    const admin = kind === "admin" ? await adminByEmail(ctx, email) : null;
    const owner = user?._id ?? admin?._id ?? null;
    const hash = await passwordHashOf(ctx, owner ?? "none");
    if (owner === null) {
      await ctx.db.query(kind === "user" ? "_users" : "_admins").first();
      await ctx.db.query("_passwords").first();
    }
    return { owner, hash, emailVerified: user?.emailVerified ?? admin !== null };
  },
});

export const emailTaken = internalQuery({
  args: { email: z.string() },
  handler: async (ctx, { email }) => await userByEmail(ctx, email) !== null,
});

/** Signs in after main has checked the password; `null` if the password was changed in the meantime. */
export const signIn = internalMutation({
  args: {
    kind: ownerKind,
    owner: z.string(),
    checkedHash: z.string(),
    /** A hash with the current cost that replaces it. */
    newHash: z.string().nullable(),
    session: newSessionSchema,
  },
  handler: async (ctx, { kind, owner, checkedHash, newHash, session }): Promise<SignInResult | null> => {
    const user = kind === "user" ? ctx.db.normalizeId("_users", owner) : null;
    const admin = kind === "admin" ? ctx.db.normalizeId("_admins", owner) : null;
    if (await passwordHashOf(ctx, owner) !== checkedHash) return null;
    if (newHash !== null) await setPasswordHash(ctx, owner, newHash);
    if (user !== null && await ctx.db.get(user) !== null) {
      return await signInUser(ctx, { user, by: "password" }, session);
    }
    if (admin !== null && await ctx.db.get(admin) !== null) {
      return await signInAdmin(ctx, admin, session);
    }
    return null;
  },
});

/** Creates or promotes a user with a password. Opens a session unless the address must be verified first. */
export const signUp = internalMutation({
  args: {
    email: z.string(),
    name: z.string().optional(),
    passwordHash: z.string(),
    session: newSessionSchema,
    requireVerification: z.boolean(),
  },
  handler: async (
    ctx,
    { email, name, passwordHash, session, requireVerification },
  ): Promise<{ userId: Id<"_users">; session: SignInResult | null } | null> => {
    if (await userByEmail(ctx, email) !== null) return null;
    const fields = { email, emailVerified: false, ...(name !== undefined && { name }) };
    const admitted = await admitUser(ctx, fields, session);
    await setPasswordHash(ctx, admitted.user, passwordHash);
    const event = { user: admitted.user, by: "password" } as const;
    await userAdmitted(ctx, event, admitted);
    return {
      userId: admitted.user,
      session: requireVerification ? null : await signInUser(ctx, event, session),
    };
  },
});

/** Deletes a user and their sessions. Returns whether the user existed. */
export const deleteUser = internalMutation({
  args: { userId: id("_users") },
  handler: async (ctx, { userId }) => {
    const user = await ctx.db.get(userId);
    if (user !== null) await removeUser(ctx, user);
    return user !== null;
  },
});
