/** Finds and changes the rows of users, administrators and passwords within a transaction. */
import type { Id } from "../../functions/api/service.ts";
import { externalLimits } from "../limits.ts";
import { type AuthDoc, type AuthMutationCtx, type AuthQueryCtx, idOf, type Owner } from "../tables.ts";
import { endAnonymity } from "./anonymous_rows.ts";
import { dropDevices } from "./device_rows.ts";
import { endSessionsOf, sessionsOf } from "./session_rows.ts";
import {
  dropChallenges,
  dropEnrolments,
  passkeysOf,
  replaceRecoveryCodes,
  totpOf,
} from "./factors/factor_rows.ts";

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
  await dropKeys(ctx, user._id);
  await endAnonymity(ctx, user._id);
  await dropDevices(ctx, { user: user._id });
  await ctx.db.delete(user._id);
}

/**
 * Deletes the second factors and passkeys of an account. Sign-ins that wait for a factor end, because nothing could finish them,
 * and proofs in its sessions no longer count.
 */
export async function dropFactors(ctx: AuthMutationCtx, account: Owner): Promise<void> {
  const owner = idOf(account);
  await dropTotp(ctx, owner);
  for (const { _id } of await passkeysOf(ctx, owner)) await ctx.db.delete(_id);
  await forgetProofs(ctx, account);
}

/** Deletes the authenticator app of an account with all that depends on it. */
export async function dropTotp(ctx: AuthMutationCtx, owner: string): Promise<void> {
  const totp = await totpOf(ctx, owner);
  if (totp !== null) await ctx.db.delete(totp._id);
  await dropEnrolments(ctx, owner);
  await replaceRecoveryCodes(ctx, owner, []);
  await dropChallenges(ctx, owner);
}

/** Proofs in the sessions of an account no longer count, except in one session. */
export async function forgetProofs(
  ctx: AuthMutationCtx,
  account: Owner,
  except: Id<"_sessions"> | null = null,
): Promise<void> {
  for (const { _id, factorAt } of await sessionsOf(ctx, account)) {
    if (factorAt !== undefined && _id !== except) await ctx.db.patch(_id, { factorAt: undefined });
  }
}

/** Revokes the API keys of a user. */
export async function dropKeys(ctx: AuthMutationCtx, user: Id<"_users">): Promise<void> {
  const keys = await ctx.db.query("_api_keys").withIndex("by_user", (q) => q.eq("user", user)).collect();
  for (const { _id } of keys) await ctx.db.delete(_id);
}

/** Returns the number of ways in which a user can sign in. `mail`: whether links are mailed to verified addresses. */
export async function waysIn(
  ctx: AuthQueryCtx,
  { _id, email, emailVerified }: AuthDoc<"_users">,
  { mail }: { readonly mail: boolean },
): Promise<number> {
  const password = await passwordHashOf(ctx, _id) === null ? 0 : 1;
  const byMail = mail && email !== undefined && emailVerified ? 1 : 0;
  return password + byMail + (await identitiesOf(ctx, _id)).length + (await passkeysOf(ctx, _id)).length;
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
  await dropKeys(ctx, user._id);
  await dropDevices(ctx, { user: user._id });
  await ctx.db.patch(user._id, { emailVerified: true });
}

function passwordRow(ctx: AuthQueryCtx, owner: string): Promise<AuthDoc<"_passwords"> | null> {
  return ctx.db.query("_passwords").withIndex("by_owner", (q) => q.eq("owner", owner)).unique();
}
