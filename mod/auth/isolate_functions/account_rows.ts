/** Finds and changes the rows of users, administrators and passwords within a transaction. */
import type { Id } from "../../functions/api/service.ts";
import { externalLimits } from "../limits.ts";
import type { AuthDoc, AuthMutationCtx, AuthQueryCtx } from "../tables.ts";
import { endSessionsOf, type Owner, sessionsOf } from "./session_rows.ts";
import { dropChallenges, dropEnrolments, replaceRecoveryCodes, totpOf } from "./factors/factor_rows.ts";

export function userByEmail(ctx: AuthQueryCtx, email: string): Promise<AuthDoc<"_users"> | null> {
  return ctx.db.query("_users").withIndex("by_email", (q) => q.eq("email", email)).unique();
}

export function adminByEmail(ctx: AuthQueryCtx, email: string): Promise<AuthDoc<"_admins"> | null> {
  return ctx.db.query("_admins").withIndex("by_email", (q) => q.eq("email", email)).unique();
}

/** Returns the stored password hash of an account, or `null`. */
export async function passwordHashOf(ctx: AuthQueryCtx, owner: string): Promise<string | null> {
  return (await passwordRow(ctx, owner))?.hash ?? null;
}

/** Stores a password hash; `null` removes the password. */
export async function setPasswordHash(
  ctx: AuthMutationCtx,
  owner: string,
  hash: string | null,
): Promise<void> {
  const row = await passwordRow(ctx, owner);
  if (row === null && hash !== null) await ctx.db.insert("_passwords", { owner, hash });
  else if (row !== null && hash !== null) await ctx.db.patch(row._id, { hash });
  else if (row !== null) await ctx.db.delete(row._id);
}

/** Deletes a user and all rows that belong to it. */
export async function removeUser(ctx: AuthMutationCtx, user: AuthDoc<"_users">): Promise<void> {
  await endSessionsOf(ctx, { user: user._id });
  await setPasswordHash(ctx, user._id, null);
  await dropIdentities(ctx, user._id);
  await dropChanges(ctx, user._id);
  await dropFactors(ctx, { user: user._id });
  await ctx.db.delete(user._id);
}

/**
 * Deletes the second factors of an account. Sign-ins that wait for one end, because nothing could finish them, and proofs in
 * its sessions no longer count. Returns whether there was a factor.
 */
export async function dropFactors(ctx: AuthMutationCtx, account: Owner): Promise<boolean> {
  const owner = "user" in account ? account.user : account.admin;
  const totp = await totpOf(ctx, owner);
  if (totp !== null) await ctx.db.delete(totp._id);
  await dropEnrolments(ctx, owner);
  await replaceRecoveryCodes(ctx, owner, []);
  await dropChallenges(ctx, owner);
  for (const { _id, factorAt } of await sessionsOf(ctx, account)) {
    if (factorAt !== undefined) await ctx.db.patch(_id, { factorAt: undefined });
  }
  return totp !== null;
}

/** Deletes the user's pending changes of address. */
export async function dropChanges(ctx: AuthMutationCtx, user: Id<"_users">): Promise<void> {
  const codes = await ctx.db.query("_codes").withIndex("by_change", (q) => q.eq("changeFor", user)).collect();
  for (const code of codes) await ctx.db.delete(code._id);
}

export function identitiesOf(ctx: AuthQueryCtx, user: Id<"_users">): Promise<AuthDoc<"_identities">[]> {
  return ctx.db.query("_identities").withIndex("by_user", (q) => q.eq("user", user))
    .take(externalLimits.identitiesPerUserMax);
}

export async function dropIdentities(ctx: AuthMutationCtx, user: Id<"_users">): Promise<void> {
  for (const row of await identitiesOf(ctx, user)) await ctx.db.delete(row._id);
}

/** Gives an account to the proven owner of its address. Removes other ways to sign in: another person may have made it. */
export async function takeOver(ctx: AuthMutationCtx, user: AuthDoc<"_users">): Promise<void> {
  await endSessionsOf(ctx, { user: user._id });
  await setPasswordHash(ctx, user._id, null);
  await dropIdentities(ctx, user._id);
  await dropChanges(ctx, user._id);
  await dropFactors(ctx, { user: user._id });
  await ctx.db.patch(user._id, { emailVerified: true });
}

function passwordRow(ctx: AuthQueryCtx, owner: string): Promise<AuthDoc<"_passwords"> | null> {
  return ctx.db.query("_passwords").withIndex("by_owner", (q) => q.eq("owner", owner)).unique();
}
