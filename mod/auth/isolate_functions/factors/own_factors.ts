/** The second factors of the caller, who is a user or an administrator: listed, enrolled, proved again, removed. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import type { Id } from "../../../functions/api/service.ts";
import { authLimits } from "../../limits.ts";
import {
  type AuthDoc,
  type AuthMutationCtx,
  type AuthQueryCtx,
  idOf,
  internalMutation,
  internalQuery,
  query,
} from "../../tables.ts";
import { dropTotp, forgetProofs, passwordHashOf } from "../account_rows.ts";
import { caller, notSignedIn, ownSession, sessionToChange } from "../own_account.ts";
import { isAnonymous, refuseAnonymous } from "../anonymous_rows.ts";
import { type StoredTotp, storedTotp } from "./challenges.ts";
import {
  dropChallenges,
  dropEnrolments,
  factorProofSchema,
  factorRequired,
  hasFactor,
  needsSecondStep,
  recoveryCodesOf,
  replaceRecoveryCodes,
  requireConfirmation,
  requireFreshFactor,
  totpOf,
  useProof,
} from "./factor_rows.ts";

interface OwnFactors {
  /** The authenticator app; `null` if there is none. */
  readonly totp: { readonly enrolledAt: number; readonly lastUsedAt: number } | null;
  /** Number of unused recovery codes. */
  readonly recoveryCodes: number;
  /** When a second factor was last proved in this session; `null` if never. */
  readonly provedAt: number | null;
}

/** Returns the caller's second factors; `null` for anonymous callers. */
export const listFactors = query({
  args: {},
  handler: async (ctx): Promise<OwnFactors | null> => {
    if (ctx.auth.userId() === null && ctx.auth.adminId() === null) return null;
    const owner = ownId(ctx);
    const [totp, session] = [await totpOf(ctx, owner), await ownSession(ctx)];
    return {
      totp: totp === null ? null : { enrolledAt: totp._creationTime, lastUsedAt: totp.lastUsedAt },
      recoveryCodes: (await recoveryCodesOf(ctx, owner)).length,
      provedAt: session?.factorAt ?? null,
    };
  },
});

/** The account of an enrolment, as main needs it. */
interface EnrolmentOwner {
  readonly owner: string;
  readonly email: string | null;
  /** Display name, if there is one. */
  readonly name: string | null;
  /** Hash of the password to check first; `null` if there is none, or a proof replaces it. */
  readonly hash: string | null;
}

/**
 * Throws if the caller cannot enroll: no session of this server, an impersonator, an anonymous user, already enrolled
 * (`factor_exists`), an address that is not verified although it could be (`email_not_verified`), no password and a sign-in too long
 * ago (`confirmation_required`), or a passkey that was not proved recently (`factor_required`).
 */
export const enrolmentOwner = internalMutation({
  args: { mail: z.boolean(), now: z.number() },
  handler: async (ctx, { mail, now }): Promise<EnrolmentOwner> => {
    const session = await sessionToChange(ctx);
    const [owner, user] = [ownId(ctx), ctx.auth.userId()];
    if (user !== null) await refuseAnonymous(ctx, user);
    await refuseSecond(ctx, owner);
    if (mail) await requireVerifiedAddress(ctx);
    const hash = await passwordHashOf(ctx, owner);
    // Another factor of the account has to be proved; a password alone adds none.
    if (hash === null || await hasFactor(ctx, owner)) await requireConfirmation(ctx, { owner, session, now });
    return { owner, ...await labelsOf(ctx), hash };
  },
});

/** An account that adds a passkey or an API key, as main needs it. */
export interface CredentialOwner extends EnrolmentOwner {
  readonly session: Id<"_sessions">;
  /** Whether it is an anonymous user. */
  readonly anonymous: boolean;
}

/**
 * Returns the caller. Throws like `enrolmentOwner` unless the caller may add a passkey or an API key. An anonymous user has nothing to
 * confirm.
 */
export async function credentialOwner(
  ctx: AuthMutationCtx,
  { mail, now }: { readonly mail: boolean; readonly now: number },
): Promise<CredentialOwner> {
  const session = await sessionToChange(ctx);
  const [owner, user] = [ownId(ctx), ctx.auth.userId()];
  if (mail) await requireVerifiedAddress(ctx);
  const hash = await hasFactor(ctx, owner) ? null : await passwordHashOf(ctx, owner);
  const anonymous = user !== null && await isAnonymous(ctx, user);
  if (hash === null && !anonymous) await requireConfirmation(ctx, { owner, session, now });
  return { owner, session: session._id, ...await labelsOf(ctx), hash, anonymous };
}

/** Stores the secret of an authenticator app until its first code arrives. Replaces an earlier one. Returns its id. */
export const storeEnrolment = internalMutation({
  args: { secret: z.string(), now: z.number() },
  handler: async (ctx, { secret, now }): Promise<string> => {
    await sessionToChange(ctx);
    const owner = ownId(ctx);
    await refuseSecond(ctx, owner);
    await dropEnrolments(ctx, owner);
    return await ctx.db.insert("_totp_enrolments", {
      owner,
      secret,
      expiresAt: now + authLimits.enrolmentMs,
    });
  },
});

/** Returns the encrypted secret of the caller's enrolment. Throws `invalid_enrolment`. */
export const findEnrolment = internalMutation({
  args: { enrolmentId: z.string(), now: z.number() },
  handler: async (ctx, args): Promise<{ owner: string; secret: string }> => {
    await sessionToChange(ctx);
    const { owner, secret } = await ownEnrolment(ctx, args);
    return { owner, secret };
  },
});

/** Makes an enrolled app a factor, with recovery codes. `step` is that of the app's first code. */
export const confirmEnrolment = internalMutation({
  args: { enrolmentId: z.string(), step: z.int(), recoveryHashes: z.array(z.string()), now: z.number() },
  handler: async (ctx, { enrolmentId, step, recoveryHashes, now }): Promise<null> => {
    const session = await sessionToChange(ctx);
    const { owner, secret } = await ownEnrolment(ctx, { enrolmentId, now });
    await refuseSecond(ctx, owner);
    await dropEnrolments(ctx, owner);
    await ctx.db.insert("_totp", { owner, secret, lastStep: step, lastUsedAt: now });
    await replaceRecoveryCodes(ctx, owner, recoveryHashes);
    await ctx.db.patch(session._id, { factorAt: now });
    return null;
  },
});

/** Returns what main needs to check a code of the caller. Throws `factor_required` without a factor. */
export const ownTotp = internalMutation({
  args: {},
  handler: async (ctx): Promise<{ owner: string; totp: StoredTotp }> => {
    await sessionToChange(ctx);
    const owner = ownId(ctx);
    const totp = await storedTotp(ctx, owner);
    if (totp === null) throw factorRequired({ enrolled: await hasFactor(ctx, owner), withinMinutes: null });
    return { owner, totp };
  },
});

/** Records in the caller's session that a second factor was proved. Returns whether the proof was valid. */
export const proveFactor = internalMutation({
  args: { proof: factorProofSchema, now: z.number() },
  handler: async (ctx, { proof, now }): Promise<boolean> => {
    const session = await sessionToChange(ctx);
    const valid = await useProof(ctx, { owner: ownId(ctx), proof, now });
    if (valid) await ctx.db.patch(session._id, { factorAt: now });
    return valid;
  },
});

/** Removes the caller's authenticator app and recovery codes. Throws `factor_required` unless a factor was proved recently. */
export const removeTotp = internalMutation({
  args: { now: z.number() },
  handler: async (ctx, { now }): Promise<null> => {
    const session = await sessionToChange(ctx);
    const owner = ownId(ctx);
    await requireFreshFactor(ctx, { owner, session, now });
    await dropTotp(ctx, owner);
    if (!await hasFactor(ctx, owner)) await forgetProofs(ctx, caller(ctx));
    return null;
  },
});

/** Replaces the caller's recovery codes. Throws `factor_required` unless a factor was proved recently. */
export const renewRecoveryCodes = internalMutation({
  args: { recoveryHashes: z.array(z.string()), now: z.number() },
  handler: async (ctx, { recoveryHashes, now }): Promise<null> => {
    const session = await sessionToChange(ctx);
    const owner = ownId(ctx);
    await requireFreshFactor(ctx, { owner, session, now });
    if (!await needsSecondStep(ctx, owner)) throw factorRequired({ enrolled: false, withinMinutes: null });
    await replaceRecoveryCodes(ctx, owner, recoveryHashes);
    await dropChallenges(ctx, owner);
    return null;
  },
});

/** Throws `factor_required` unless a second factor was proved in the caller's session, and recently if a time is given. */
export const requireFactor = internalQuery({
  args: { within: z.object({ minutes: z.number().positive(), now: z.number() }).nullable() },
  handler: async (ctx, { within }): Promise<null> => {
    const owner = ownId(ctx);
    const factorAt = (await ownSession(ctx))?.factorAt;
    const fresh = factorAt !== undefined &&
      (within === null || within.now - factorAt < within.minutes * 60_000);
    if (!fresh) {
      throw factorRequired({
        enrolled: await hasFactor(ctx, owner),
        withinMinutes: within?.minutes ?? null,
      });
    }
    return null;
  },
});

/** Returns the id of the calling user or administrator. Throws `not_signed_in`. */
export function ownId(ctx: AuthQueryCtx): string {
  return idOf(caller(ctx));
}

async function refuseSecond(ctx: AuthQueryCtx, owner: string): Promise<void> {
  if (await totpOf(ctx, owner) === null) return;
  throw new UserError("factor_exists", "The account already has an authenticator app: remove it first");
}

async function ownEnrolment(
  ctx: AuthQueryCtx,
  { enrolmentId, now }: { readonly enrolmentId: string; readonly now: number },
): Promise<AuthDoc<"_totp_enrolments">> {
  const id = ctx.db.normalizeId("_totp_enrolments", enrolmentId);
  const enrolment = id === null ? null : await ctx.db.get(id);
  if (enrolment === null || enrolment.expiresAt <= now || enrolment.owner !== ownId(ctx)) {
    throw new UserError(
      "invalid_enrolment",
      "The enrolment was replaced, confirmed or has expired: restart it",
    );
  }
  return enrolment;
}

/**
 * Throws `email_not_verified` unless the caller's address, if there is one, is verified: its proven owner could take over the
 * account, which deletes the factors.
 */
async function requireVerifiedAddress(ctx: AuthQueryCtx): Promise<void> {
  const userId = ctx.auth.userId();
  const user = userId === null ? null : await ctx.db.get(userId);
  if (user?.email === undefined || user.emailVerified) return;
  throw new UserError("email_not_verified", "Verify your email address first");
}

async function labelsOf(
  ctx: AuthQueryCtx,
): Promise<{ readonly email: string | null; readonly name: string | null }> {
  const owner = caller(ctx);
  const user = "user" in owner ? await ctx.db.get(owner.user) : null;
  const admin = "admin" in owner ? await ctx.db.get(owner.admin) : null;
  if (user === null && admin === null) throw notSignedIn();
  return { email: user?.email ?? admin?.email ?? null, name: user?.name ?? null };
}
