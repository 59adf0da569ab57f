/** Transactions of address verification, password reset and sign-in by mail. */
import { z } from "zod";
import { id } from "../../functions/api/service.ts";
import { internalMutation } from "../tables.ts";
import { dropChanges, setPasswordHash, takeOver, userByEmail } from "./account_rows.ts";
import { newCodeSchema, proofSchema, storeCode, useCode } from "./code_rows.ts";
import { signIn } from "./factors/challenges.ts";
import { admitUser, userAdmitted } from "./hooks.ts";
import { endSessionsOf, newSessionSchema, type SignInResult } from "./session_rows.ts";

/** Stores a code if the address may receive one. Returns whether to send the mail. */
export const requestCode = internalMutation({
  args: { code: newCodeSchema, signups: z.boolean() },
  handler: async (ctx, { code, signups }): Promise<boolean> => {
    const user = await userByEmail(ctx, code.email);
    const wanted = code.kind === "magic" ? user !== null || signups : user !== null;
    if (!wanted || (code.kind === "verify" && user?.emailVerified === true)) return false;
    await storeCode(ctx, code);
    return true;
  },
});

/** Stores the code for a user's new address. Returns false if the address is taken. */
export const requestChange = internalMutation({
  args: { code: newCodeSchema, userId: id("_users") },
  handler: async (ctx, { code, userId }): Promise<boolean> => {
    if (await ctx.db.get(userId) === null || await userByEmail(ctx, code.email) !== null) return false;
    await dropChanges(ctx, userId);
    await storeCode(ctx, code, { changeFor: userId });
    return true;
  },
});

/** Marks an address as verified, or makes it the user's new address. Returns whether the proof was valid. */
export const confirmEmail = internalMutation({
  args: { proof: proofSchema, now: z.number() },
  handler: async (ctx, { proof, now }): Promise<boolean> => {
    const code = await useCode(ctx, proof, { kind: "verify", now });
    if (code === null) return false;
    const holder = await userByEmail(ctx, code.email);
    if (code.changeFor === undefined) {
      if (holder === null) return false;
      await ctx.db.patch(holder._id, { emailVerified: true });
      return true;
    }
    const user = await ctx.db.get(code.changeFor);
    // Another user may have signed up with the address since the mail was sent.
    if (user === null || (holder !== null && holder._id !== user._id)) return false;
    await ctx.db.patch(user._id, { email: code.email, emailVerified: true });
    return true;
  },
});

/** Sets a new password, ends all other sessions and signs in; `null` if the proof is invalid. */
export const resetPassword = internalMutation({
  args: { proof: proofSchema, passwordHash: z.string(), session: newSessionSchema },
  handler: async (ctx, { proof, passwordHash, session }): Promise<SignInResult | null> => {
    const code = await useCode(ctx, proof, { kind: "reset", now: session.now });
    const user = code === null ? null : await userByEmail(ctx, code.email);
    if (user === null) return null;
    if (user.emailVerified) await endSessionsOf(ctx, { user: user._id });
    else await takeOver(ctx, user);
    await setPasswordHash(ctx, user._id, passwordHash);
    return await signIn(ctx, { user: user._id, by: "mail" }, session);
  },
});

/** Signs in by mail and creates the user if necessary; `null` if the proof is invalid. */
export const signInByMail = internalMutation({
  args: { proof: proofSchema, signups: z.boolean(), session: newSessionSchema },
  handler: async (ctx, { proof, signups, session }): Promise<SignInResult | null> => {
    const code = await useCode(ctx, proof, { kind: "magic", now: session.now });
    if (code === null) return null;
    const user = await userByEmail(ctx, code.email);
    if (user === null && !signups) return null;
    // The account's creator never proved to own the address: from now on only the owner of the mailbox has access.
    if (user !== null && !user.emailVerified) await takeOver(ctx, user);
    if (user !== null) return await signIn(ctx, { user: user._id, by: "mail" }, session);
    const admitted = await admitUser(ctx, { email: code.email, emailVerified: true }, session);
    const event = { user: admitted.user, by: "mail" } as const;
    await userAdmitted(ctx, event, admitted);
    return await signIn(ctx, event, session);
  },
});
