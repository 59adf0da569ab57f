/** Administrators remove the second factors of others, in sessions that they confirmed recently. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import type { Id } from "../../../functions/api/service.ts";
import { type AuthDoc, type AuthMutationCtx, internalMutation } from "../../tables.ts";
import { dropFactors, forgetProofs, passwordHashOf } from "../account_rows.ts";
import { callingAdmin, existingAdmin } from "../administrators.ts";
import { currentSession, notSignedIn } from "../own_account.ts";
import { existing } from "../users.ts";
import { requireConfirmation } from "./factor_rows.ts";
import { passkeyOf } from "./own_passkeys.ts";

/** Records in the session of an administrator that their password was confirmed; `false` if it was changed in the meantime. */
export const confirmAdminPassword = internalMutation({
  args: { checkedHash: z.string().nullable(), now: z.number() },
  handler: async (ctx, { checkedHash, now }): Promise<boolean> => {
    const { admin, session } = await adminSession(ctx);
    if (await passwordHashOf(ctx, admin) !== checkedHash) return false;
    await ctx.db.patch(session._id, { confirmedAt: now });
    return true;
  },
});

/** Removes the second factors of a user who has lost the device. */
export const removeFactorsOfUser = internalMutation({
  args: { userId: z.string(), now: z.number() },
  handler: async (ctx, { userId, now }): Promise<null> => {
    await confirmedAdmin(ctx, now);
    await dropFactors(ctx, { user: (await existing(ctx, userId))._id });
    return null;
  },
});

/** Removes the second factors of an administrator who has lost the device; the caller's own are removed with a proof. */
export const removeFactorsOfAdmin = internalMutation({
  args: { adminId: z.string(), now: z.number() },
  handler: async (ctx, { adminId, now }): Promise<null> => {
    const { _id: admin } = await existingAdmin(ctx, adminId);
    if (admin === callingAdmin(ctx)) {
      throw new UserError("own_factors", "Remove your own second factor with a code of it");
    }
    await confirmedAdmin(ctx, now);
    await dropFactors(ctx, { admin });
    return null;
  },
});

/** Removes a passkey of a user. Proofs in the user's sessions no longer count. */
export const removePasskeyOfUser = internalMutation({
  args: { userId: z.string(), passkeyId: z.string(), now: z.number() },
  handler: async (ctx, { userId, passkeyId, now }): Promise<null> => {
    const user = (await existing(ctx, userId))._id;
    await confirmedAdmin(ctx, now);
    await ctx.db.delete((await passkeyOf(ctx, user, passkeyId))._id);
    await forgetProofs(ctx, { user });
    return null;
  },
});

/** Throws `factor_required` or `confirmation_required` unless the calling administrator confirmed the session recently. */
async function confirmedAdmin(ctx: AuthMutationCtx, now: number): Promise<void> {
  const { admin, session } = await adminSession(ctx);
  await requireConfirmation(ctx, { owner: admin, session, now });
}

async function adminSession(
  ctx: AuthMutationCtx,
): Promise<{ readonly admin: Id<"_admins">; readonly session: AuthDoc<"_sessions"> }> {
  const [admin, id] = [callingAdmin(ctx), currentSession(ctx)];
  const session = id === null ? null : await ctx.db.get(id);
  if (session === null) throw notSignedIn();
  return { admin, session };
}
