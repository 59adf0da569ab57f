/** Uses of passkeys within a transaction: single use of challenges, comparison of the counter, and sign-ins. */
import { z } from "zod";
import type { Id } from "../../../functions/api/service.ts";
import {
  type AuthDoc,
  type AuthMutationCtx,
  type AuthQueryCtx,
  internalMutation,
  type Owner,
} from "../../tables.ts";
import { completeSignIn } from "../hooks.ts";
import { newSessionSchema, type OpenedSession, openSession } from "../session_rows.ts";
import { accountOf, passwordAccountOf } from "./factor_rows.ts";

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
  readonly owner: string;
  /** Rate limit key of the account's password; `null` if the account has no address. */
  readonly account: string | null;
  readonly publicKey: string;
  readonly backupEligible: boolean;
}

/** Finds a passkey by the id of its credential. A mutation without writes, because query results are cached. */
export const findPasskey = internalMutation({
  args: { credentialId: z.string() },
  handler: async (ctx, { credentialId }): Promise<FoundPasskey | null> => {
    const passkey = await passkeyByCredential(ctx, credentialId);
    if (passkey === null) return null;
    const { _id, owner, publicKey, backupEligible } = passkey;
    const account = await passwordAccountOf(ctx, owner);
    return { passkeyId: _id, owner, account, publicKey, backupEligible };
  },
});

/** Opens the session of a user or administrator who has used a passkey, which is a second factor, too. */
export const signInWithPasskey = internalMutation({
  args: {
    kind: z.enum(["user", "admin"]),
    use: passkeyUseSchema,
    session: newSessionSchema,
    requireVerification: z.boolean(),
  },
  handler: async (
    ctx,
    { kind, use, session, requireVerification },
  ): Promise<OpenedSession | { readonly refused: PasskeyRefusal | "email_not_verified" }> => {
    const { now } = session;
    const account = await usePasskey(ctx, use, { now, isOwner: (account) => kind in account });
    if (typeof account === "string") return { refused: account };
    if ("admin" in account) return await openSession(ctx, account, { session, factorAt: now });
    const verified = (await ctx.db.get(account.user))?.emailVerified ?? false;
    if (requireVerification && !verified) return { refused: "email_not_verified" };
    return await completeSignIn(ctx, { ...account, by: "passkey" }, session, { factorAt: now });
  },
});

/**
 * Uses a challenge and a passkey. Returns its account, or why it is refused: the passkey or its account was removed or is another one,
 * the challenge was used, or the counter did not grow, which means that there is a copy of the authenticator.
 */
export async function usePasskey(
  ctx: AuthMutationCtx,
  { passkeyId, challenge, counter, backedUp }: z.infer<typeof passkeyUseSchema>,
  { now, isOwner }: { readonly now: number; readonly isOwner: (account: Owner) => boolean },
): Promise<Owner | PasskeyRefusal> {
  const id = ctx.db.normalizeId("_passkeys", passkeyId);
  const passkey = id === null ? null : await ctx.db.get(id);
  const account = passkey === null ? null : await accountOf(ctx, passkey.owner);
  if (passkey === null || account === null || !isOwner(account)) return "unknown_passkey";
  if (!await useChallenge(ctx, challenge)) return "invalid_challenge";
  if ((counter > 0 || passkey.counter > 0) && counter <= passkey.counter) return "passkey_copied";
  await ctx.db.patch(passkey._id, { counter, backedUp, lastUsedAt: now });
  return account;
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
