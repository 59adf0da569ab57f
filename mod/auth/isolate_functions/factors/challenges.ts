/** Sign-ins of accounts with a second factor: the first step stores a challenge, the second opens the session. */
import { z } from "zod";
import { authLimits } from "../../limits.ts";
import { type AuthDoc, type AuthMutationCtx, internalMutation } from "../../tables.ts";
import { completeSignIn, type UserEvent } from "../hooks.ts";
import { newSessionSchema, type OpenedSession, openSession, type SignInResult } from "../session_rows.ts";
import {
  accountOf,
  challengesOf,
  factorProofSchema,
  needsSecondStep,
  passwordAccountOf,
  totpOf,
  useProof,
} from "./factor_rows.ts";

/** Opens a session of an authenticated user, or stores a challenge if the account has a second factor. */
export async function signIn(
  ctx: AuthMutationCtx,
  { user, ...event }: UserEvent,
  session: z.infer<typeof newSessionSchema>,
): Promise<SignInResult> {
  if (!await needsSecondStep(ctx, user)) return await completeSignIn(ctx, { user, ...event }, session);
  return await storeChallenge(ctx, { owner: user, session, event });
}

/** Like {@linkcode signIn}, for an administrator. */
export async function signInAdmin(
  ctx: AuthMutationCtx,
  admin: AuthDoc<"_admins">["_id"],
  session: z.infer<typeof newSessionSchema>,
): Promise<SignInResult> {
  if (!await needsSecondStep(ctx, admin)) return await openSession(ctx, { admin }, { session });
  return await storeChallenge(ctx, { owner: admin, session });
}

async function storeChallenge(
  ctx: AuthMutationCtx,
  { owner, session, event }: {
    readonly owner: string;
    readonly session: z.infer<typeof newSessionSchema>;
    readonly event?: Omit<UserEvent, "user">;
  },
): Promise<SignInResult> {
  const older = await challengesOf(ctx, owner);
  const dropped = older.slice(0, Math.max(0, older.length + 1 - authLimits.challengesPerOwnerMax));
  for (const { _id } of dropped) await ctx.db.delete(_id);
  const expiresAt = session.now + authLimits.challengeMs;
  await ctx.db.insert("_sign_in_challenges", {
    owner,
    tokenHash: session.challengeHash,
    attemptsLeft: authLimits.challengeAttemptsMax,
    expiresAt,
    ...(event !== undefined && { event }),
  });
  return { challengeExpiresAt: expiresAt };
}

/** A confirmed authenticator app, as main needs it to check a code. */
export interface StoredTotp {
  readonly factor: string;
  /** Encrypted. */
  readonly secret: string;
}

export interface FoundChallenge {
  readonly owner: string;
  /** Rate limit key of the account's password; `null` if the account has no address. */
  readonly account: string | null;
  readonly totp: StoredTotp | null;
}

/** Finds an open sign-in. A mutation without writes, because query results are cached. */
export const findChallenge = internalMutation({
  args: { tokenHash: z.string(), now: z.number() },
  handler: async (ctx, args): Promise<FoundChallenge | null> => {
    const challenge = await openChallenge(ctx, args);
    if (challenge === null) return null;
    const { owner } = challenge;
    return { owner, account: await passwordAccountOf(ctx, owner), totp: await storedTotp(ctx, owner) };
  },
});

export async function storedTotp(ctx: AuthMutationCtx, owner: string): Promise<StoredTotp | null> {
  const totp = await totpOf(ctx, owner);
  return totp === null ? null : { factor: totp._id, secret: totp.secret };
}

/** Opens the session of a sign-in whose second factor was proved. The last wrong proof ends the sign-in. */
export const finishChallenge = internalMutation({
  args: { tokenHash: z.string(), proof: factorProofSchema, session: newSessionSchema },
  handler: async (
    ctx,
    { tokenHash, proof, session },
  ): Promise<OpenedSession | { readonly refused: "invalid_challenge" | "invalid_code" }> => {
    const { now } = session;
    const challenge = await openChallenge(ctx, { tokenHash, now });
    if (challenge === null) return { refused: "invalid_challenge" };
    const { _id, owner, event } = challenge;
    if (!await useProof(ctx, { owner, proof, now })) {
      const attemptsLeft = challenge.attemptsLeft - 1;
      if (attemptsLeft > 0) await ctx.db.patch(_id, { attemptsLeft });
      else await ctx.db.delete(_id);
      return { refused: "invalid_code" };
    }
    await ctx.db.delete(_id);
    const account = await accountOf(ctx, owner);
    if (account !== null && "admin" in account) {
      return await openSession(ctx, account, { session, factorAt: now });
    }
    // Otherwise the account was deleted manually.
    if (account === null || event === undefined) return { refused: "invalid_challenge" };
    return await completeSignIn(ctx, { ...account, ...event }, session, { factorAt: now });
  },
});

async function openChallenge(
  ctx: AuthMutationCtx,
  { tokenHash, now }: { readonly tokenHash: string; readonly now: number },
): Promise<AuthDoc<"_sign_in_challenges"> | null> {
  const challenge = await ctx.db.query("_sign_in_challenges")
    .withIndex("by_token", (q) => q.eq("tokenHash", tokenHash)).unique();
  return challenge === null || challenge.expiresAt <= now ? null : challenge;
}
