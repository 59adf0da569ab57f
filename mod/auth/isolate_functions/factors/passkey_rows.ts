/** Uses of passkeys within a transaction: single use of challenges, comparison of the counter, and sign-ins. */
import { z } from "zod";
import type { Id } from "../../../functions/api/service.ts";
import { type AuthDoc, type AuthMutationCtx, type AuthQueryCtx, internalMutation } from "../../tables.ts";
import { completeSignIn } from "../hooks.ts";
import { newSessionSchema, type OpenedSession } from "../session_rows.ts";

/** A challenge that main has found genuine and open. */
export const openChallengeSchema = z.object({ hash: z.string(), expiresAt: z.number() });

/** A use of a passkey whose signature main has checked. */
export const passkeyUseSchema = z.object({
  passkeyId: z.string(),
  challenge: openChallengeSchema,
  /** The authenticator's counter. */
  counter: z.int(),
  backedUp: z.boolean(),
});

export type PasskeyRefusal = "invalid_challenge" | "unknown_passkey" | "passkey_copied";

export interface FoundPasskey {
  readonly passkeyId: Id<"_passkeys">;
  readonly userId: Id<"_users">;
  readonly email: string | null;
  readonly publicKey: string;
  readonly backupEligible: boolean;
}

/** Finds a passkey by the id of its credential. A mutation without writes, because query results are cached. */
export const findPasskey = internalMutation({
  args: { credentialId: z.string() },
  handler: async (ctx, { credentialId }): Promise<FoundPasskey | null> => {
    const passkey = await passkeyByCredential(ctx, credentialId);
    if (passkey === null) return null;
    const { _id, user, publicKey, backupEligible } = passkey;
    const email = (await ctx.db.get(user))?.email ?? null;
    return { passkeyId: _id, userId: user, email, publicKey, backupEligible };
  },
});

/** Opens the session of a user who has used a passkey, which is a second factor, too. */
export const signInWithPasskey = internalMutation({
  args: { use: passkeyUseSchema, session: newSessionSchema, requireVerification: z.boolean() },
  handler: async (
    ctx,
    { use, session, requireVerification },
  ): Promise<OpenedSession | { readonly refused: PasskeyRefusal | "email_not_verified" }> => {
    const { now } = session;
    const used = await usePasskey(ctx, use, { now });
    if (typeof used === "string") return { refused: used };
    const user = await ctx.db.get(used.user);
    // The account was deleted manually.
    if (user === null) return { refused: "unknown_passkey" };
    if (requireVerification && !user.emailVerified) return { refused: "email_not_verified" };
    return await completeSignIn(ctx, { user: user._id, by: "passkey" }, session, { factorAt: now });
  },
});

/**
 * Uses a challenge and a passkey. Returns the passkey, or why it is refused: the passkey was removed, the challenge was used, or the
 * counter did not grow, which means that there is a copy of the authenticator.
 */
export async function usePasskey(
  ctx: AuthMutationCtx,
  { passkeyId, challenge, counter, backedUp }: z.infer<typeof passkeyUseSchema>,
  { now, owner }: { readonly now: number; readonly owner?: Id<"_users"> },
): Promise<AuthDoc<"_passkeys"> | PasskeyRefusal> {
  const id = ctx.db.normalizeId("_passkeys", passkeyId);
  const passkey = id === null ? null : await ctx.db.get(id);
  if (passkey === null || passkey.user !== (owner ?? passkey.user)) return "unknown_passkey";
  if (!await useChallenge(ctx, challenge)) return "invalid_challenge";
  if ((counter > 0 || passkey.counter > 0) && counter <= passkey.counter) return "passkey_copied";
  await ctx.db.patch(passkey._id, { counter, backedUp, lastUsedAt: now });
  return passkey;
}

/** Uses a challenge, which works once. Returns whether it was unused. */
export async function useChallenge(
  ctx: AuthMutationCtx,
  { hash, expiresAt }: z.infer<typeof openChallengeSchema>,
): Promise<boolean> {
  const used = await ctx.db.query("_used_challenges").withIndex("by_hash", (q) => q.eq("hash", hash)).first();
  if (used !== null) return false;
  await ctx.db.insert("_used_challenges", { hash, expiresAt });
  return true;
}

export function passkeyByCredential(
  ctx: AuthQueryCtx,
  credentialId: string,
): Promise<AuthDoc<"_passkeys"> | null> {
  return ctx.db.query("_passkeys").withIndex("by_credential", (q) => q.eq("credentialId", credentialId))
    .unique();
}
