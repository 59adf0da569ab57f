/** Rows of second factors within a transaction: look-ups, single use of codes, deletion. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import { authLimits } from "../../limits.ts";
import type { AuthDoc, AuthMutationCtx, AuthQueryCtx, Owner } from "../../tables.ts";

/** A proof of a second factor. Main has verified the code of an authenticator app; only hashes of recovery codes arrive here. */
export const factorProofSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("totp"), factor: z.string(), step: z.int() }),
  z.object({ kind: z.literal("recovery"), hash: z.string() }),
  /** Counts as an attempt. */
  z.object({ kind: z.literal("wrong") }),
]);
export type FactorProof = z.infer<typeof factorProofSchema>;

/** Whether sign-ins of an account take a second step. Those with a passkey never do. */
export async function needsSecondStep(ctx: AuthQueryCtx, owner: string): Promise<boolean> {
  return await totpOf(ctx, owner) !== null;
}

/** Whether the account has a factor to prove: an authenticator app or a passkey. */
export async function hasFactor(ctx: AuthQueryCtx, owner: string): Promise<boolean> {
  return await needsSecondStep(ctx, owner) || await passkeysIn(ctx, owner).first() !== null;
}

/** Returns the passkeys of an account, oldest first. */
export function passkeysOf(ctx: AuthQueryCtx, owner: string): Promise<AuthDoc<"_passkeys">[]> {
  return passkeysIn(ctx, owner).take(authLimits.passkeysPerUserMax);
}

function passkeysIn(ctx: AuthQueryCtx, owner: string) {
  return ctx.db.query("_passkeys").withIndex("by_owner", (q) => q.eq("owner", owner));
}

/** Returns the account with an id; `null` if it does not exist. */
export async function accountOf(ctx: AuthQueryCtx, owner: string): Promise<Owner | null> {
  const [user, admin] = [ctx.db.normalizeId("_users", owner), ctx.db.normalizeId("_admins", owner)];
  if (user !== null && await ctx.db.get(user) !== null) return { user };
  return admin !== null && await ctx.db.get(admin) !== null ? { admin } : null;
}

/** Returns the rate limit key of an account's password; `null` if the account has no address. */
export async function passwordAccountOf(ctx: AuthQueryCtx, owner: string): Promise<string | null> {
  const account = await accountOf(ctx, owner);
  if (account === null) return null;
  if ("admin" in account) return `admin ${(await ctx.db.get(account.admin))?.email}`;
  const email = (await ctx.db.get(account.user))?.email;
  return email === undefined ? null : `user ${email}`;
}

export function totpOf(ctx: AuthQueryCtx, owner: string): Promise<AuthDoc<"_totp"> | null> {
  return ctx.db.query("_totp").withIndex("by_owner", (q) => q.eq("owner", owner)).unique();
}

/** Uses a proof, which works once. Returns whether it was valid. */
export async function useProof(
  ctx: AuthMutationCtx,
  { owner, proof, now }: { readonly owner: string; readonly proof: FactorProof; readonly now: number },
): Promise<boolean> {
  switch (proof.kind) {
    case "totp": {
      const totp = await totpOf(ctx, owner);
      if (totp === null || totp._id !== proof.factor || proof.step <= totp.lastStep) return false;
      await ctx.db.patch(totp._id, { lastStep: proof.step, lastUsedAt: now });
      return true;
    }
    case "recovery": {
      const code = await ctx.db.query("_recovery_codes")
        .withIndex("by_owner", (q) => q.eq("owner", owner).eq("hash", proof.hash)).first();
      if (code !== null) await ctx.db.delete(code._id);
      return code !== null;
    }
    case "wrong":
      return false;
    default:
      return proof satisfies never;
  }
}

export function recoveryCodesOf(ctx: AuthQueryCtx, owner: string): Promise<AuthDoc<"_recovery_codes">[]> {
  return ctx.db.query("_recovery_codes").withIndex("by_owner", (q) => q.eq("owner", owner)).collect();
}

/** Stores the hashes of new recovery codes. Earlier ones no longer work. */
export async function replaceRecoveryCodes(
  ctx: AuthMutationCtx,
  owner: string,
  hashes: readonly string[],
): Promise<void> {
  for (const { _id } of await recoveryCodesOf(ctx, owner)) await ctx.db.delete(_id);
  for (const hash of hashes) await ctx.db.insert("_recovery_codes", { owner, hash });
}

export async function dropEnrolments(ctx: AuthMutationCtx, owner: string): Promise<void> {
  const rows = await ctx.db.query("_totp_enrolments").withIndex("by_owner", (q) => q.eq("owner", owner))
    .collect();
  for (const { _id } of rows) await ctx.db.delete(_id);
}

/** Ends an account's sign-ins that wait for a second factor. */
export async function dropChallenges(ctx: AuthMutationCtx, owner: string): Promise<void> {
  for (const { _id } of await challengesOf(ctx, owner)) await ctx.db.delete(_id);
}

/** Oldest first. */
export function challengesOf(ctx: AuthQueryCtx, owner: string): Promise<AuthDoc<"_sign_in_challenges">[]> {
  return ctx.db.query("_sign_in_challenges").withIndex("by_owner", (q) => q.eq("owner", owner)).collect();
}

/** Returns the error for a caller who has to prove a second factor first. */
export function factorRequired(
  details: { readonly enrolled: boolean; readonly withinMinutes: number | null },
): UserError {
  const message = details.enrolled ? "Confirm your second factor first" : "Set up a second factor first";
  return new UserError("factor_required", message, details);
}

/** The session of a caller who makes a sensitive change. */
interface ChangingSession {
  /** Id of the user or administrator. */
  readonly owner: string;
  readonly session: AuthDoc<"_sessions">;
  readonly now: number;
}

/** Throws `factor_required` unless a second factor was proved in the session recently. */
export async function requireFreshFactor(
  ctx: AuthQueryCtx,
  { owner, session, now }: ChangingSession,
): Promise<void> {
  if (session.factorAt !== undefined && now - session.factorAt < authLimits.factorFreshMs) return;
  const withinMinutes = authLimits.factorFreshMs / 60_000;
  throw factorRequired({ enrolled: await hasFactor(ctx, owner), withinMinutes });
}

/**
 * Throws unless the owner of the account confirmed the session recently: with a second factor (`factor_required`) or, if the account
 * has none, by signing in or with the password (`confirmation_required`).
 */
export async function requireConfirmation(
  ctx: AuthQueryCtx,
  { owner, session, now }: ChangingSession,
): Promise<void> {
  if (await hasFactor(ctx, owner)) return await requireFreshFactor(ctx, { owner, session, now });
  const confirmedAt = Math.max(session._creationTime, session.confirmedAt ?? 0);
  if (now - confirmedAt < authLimits.confirmationFreshMs) return;
  throw new UserError("confirmation_required", "Sign in again to make this change");
}

/** Deletes expired enrolments, sign-ins and used challenges. Returns whether more may remain. */
export async function dropExpiredChallenges(
  ctx: AuthMutationCtx,
  { now, rows }: { readonly now: number; readonly rows: number },
): Promise<boolean> {
  const challenges = await ctx.db.query("_sign_in_challenges")
    .withIndex("by_expiry", (q) => q.lte("expiresAt", now)).take(rows);
  const enrolments = await ctx.db.query("_totp_enrolments")
    .withIndex("by_expiry", (q) => q.lte("expiresAt", now)).take(rows);
  const used = await ctx.db.query("_used_challenges")
    .withIndex("by_expiry", (q) => q.lte("expiresAt", now)).take(rows);
  for (const { _id } of [...challenges, ...enrolments, ...used]) await ctx.db.delete(_id);
  return [challenges, enrolments, used].some((deleted) => deleted.length === rows);
}
