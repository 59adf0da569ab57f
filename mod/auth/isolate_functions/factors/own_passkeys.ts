/** The passkeys of the calling user: listed, registered, named, proved, removed. Main has checked the answers of authenticators. */
import { z } from "zod";
import { serviceErrors, UserError } from "../../../errors.ts";
import type { Id } from "../../../functions/api/service.ts";
import { authLimits } from "../../limits.ts";
import { type AuthDoc, type AuthQueryCtx, internalMutation, mutation, query } from "../../tables.ts";
import { forgetProofs, waysIn } from "../account_rows.ts";
import { endAnonymity, isAnonymous } from "../anonymous_rows.ts";
import { userPromoted } from "../hooks.ts";
import { endSessionsOf } from "../session_rows.ts";
import { notSignedIn, refuseImpersonator, sessionToChange, signedInUser } from "../own_account.ts";
import { hasFactor, passkeysOf, requireFreshFactor } from "./factor_rows.ts";
import { type CredentialOwner, credentialOwner } from "./own_factors.ts";
import {
  openChallengeSchema,
  passkeyByCredential,
  type PasskeyRefusal,
  passkeyUseSchema,
  useChallenge,
  usePasskey,
} from "./passkey_rows.ts";

/** A passkey as its user sees it. Times are milliseconds since the epoch. */
export interface OwnPasskey {
  readonly passkeyId: Id<"_passkeys">;
  readonly name: string;
  readonly createdAt: number;
  /** `null` if it was never used. */
  readonly lastUsedAt: number | null;
  /** Whether it is backed up, and so survives the loss of the device. */
  readonly backedUp: boolean;
}

/** Returns the caller's passkeys, oldest first; `null` for anonymous callers and administrators. */
export const listPasskeys = query({
  args: {},
  handler: async (ctx): Promise<OwnPasskey[] | null> => {
    const user = ctx.auth.userId();
    return user === null ? null : await shownPasskeys(ctx, user);
  },
});

export async function shownPasskeys(ctx: AuthQueryCtx, user: Id<"_users">): Promise<OwnPasskey[]> {
  return (await passkeysOf(ctx, user)).map((row) => ({
    passkeyId: row._id,
    name: row.name,
    createdAt: row._creationTime,
    lastUsedAt: row.lastUsedAt ?? null,
    backedUp: row.backedUp,
  }));
}

/** A credential in options for browsers: a `PublicKeyCredentialDescriptor` without its type. */
export interface CredentialDescriptor {
  readonly id: string;
  readonly transports: readonly string[];
}

/** Returns the caller, who adds a passkey under the conditions of a second factor. Throws `too_many_passkeys`, `signups_disabled`. */
export const passkeyOwner = internalMutation({
  args: {
    mail: z.boolean(),
    /** Why an anonymous user cannot sign up with a passkey. */
    signUpRefusal: z.enum(["signups_disabled", "email_not_verified"]).nullable(),
    now: z.number(),
  },
  handler: async (
    ctx,
    { signUpRefusal, ...args },
  ): Promise<CredentialOwner & { readonly credentials: readonly CredentialDescriptor[] }> => {
    const owner = await credentialOwner(ctx, args);
    if (signUpRefusal !== null && await isAnonymous(ctx, owner.userId)) {
      throw new UserError(signUpRefusal, serviceErrors[signUpRefusal][1]);
    }
    const passkeys = await passkeysOf(ctx, owner.userId);
    refuseMore(passkeys);
    return { ...owner, credentials: passkeys.map(descriptorOf) };
  },
});

/**
 * Stores a passkey whose registration main has checked. The registration counts as a proof in the session. An anonymous user has
 * signed up with it.
 */
export const addPasskey = internalMutation({
  args: {
    challenge: openChallengeSchema,
    credential: z.object({
      credentialId: z.string(),
      publicKey: z.string(),
      counter: z.int(),
      transports: z.array(z.string()),
      backupEligible: z.boolean(),
      backedUp: z.boolean(),
    }),
    name: z.string(),
    now: z.number(),
  },
  handler: async (
    ctx,
    { challenge, credential, name, now },
  ): Promise<{ readonly passkeyId: Id<"_passkeys"> } | { readonly refused: "invalid_challenge" }> => {
    const session = await sessionToChange(ctx);
    const user = signedInUser(ctx);
    if (await ctx.db.get(user) === null) throw notSignedIn();
    if (!await useChallenge(ctx, challenge)) return { refused: "invalid_challenge" };
    refuseMore(await passkeysOf(ctx, user));
    const taken = await passkeyByCredential(ctx, credential.credentialId);
    if (taken !== null && await ctx.db.get(taken.user) !== null) {
      throw new UserError("passkey_exists", "This passkey is registered already");
    }
    // Its user was deleted manually.
    if (taken !== null) await ctx.db.delete(taken._id);
    const passkeyId = await ctx.db.insert("_passkeys", { user, ...credential, name });
    await ctx.db.patch(session._id, { factorAt: now });
    if (await isAnonymous(ctx, user)) {
      await endAnonymity(ctx, user);
      await endSessionsOf(ctx, { user }, { except: session._id });
      await userPromoted(ctx, { user, by: "passkey" }, user);
    }
    return { passkeyId };
  },
});

/** Returns the caller's session and passkeys, to ask for a proof. Throws `no_session`. */
export const passkeysToProve = internalMutation({
  args: {},
  handler: async (ctx): Promise<{ session: Id<"_sessions">; credentials: CredentialDescriptor[] }> => {
    const session = await sessionToChange(ctx);
    const passkeys = await passkeysOf(ctx, signedInUser(ctx));
    return { session: session._id, credentials: passkeys.map(descriptorOf) };
  },
});

/** Records in the caller's session that a passkey was proved. Returns why it was refused, or `null`. */
export const provePasskey = internalMutation({
  args: { use: passkeyUseSchema, now: z.number() },
  handler: async (ctx, { use, now }): Promise<PasskeyRefusal | null> => {
    const session = await sessionToChange(ctx);
    const used = await usePasskey(ctx, use, { now, owner: signedInUser(ctx) });
    if (typeof used === "string") return used;
    await ctx.db.patch(session._id, { factorAt: now });
    return null;
  },
});

/** Changes the name of one of the caller's passkeys. */
export const renamePasskey = mutation({
  args: { passkeyId: z.string(), name: z.string().trim().min(1).max(authLimits.passkeyNameCharsMax) },
  handler: async (ctx, { passkeyId, name }): Promise<null> => {
    await refuseImpersonator(ctx);
    const { _id } = await passkeyOf(ctx, signedInUser(ctx), passkeyId);
    await ctx.db.patch(_id, { name });
    return null;
  },
});

/** Removes one of the caller's passkeys soon after a proof. Refuses the last way to sign in. Proofs in other sessions no longer count. */
export const removePasskey = internalMutation({
  args: { passkeyId: z.string(), mail: z.boolean(), now: z.number() },
  handler: async (ctx, { passkeyId, mail, now }): Promise<null> => {
    const session = await sessionToChange(ctx);
    const user = signedInUser(ctx);
    const account = await ctx.db.get(user);
    if (account === null) throw notSignedIn();
    const { _id } = await passkeyOf(ctx, user, passkeyId);
    await requireFreshFactor(ctx, { owner: user, session, now });
    if (await waysIn(ctx, account, { mail }) < 2) {
      throw new UserError("last_way_in", "Set a password or add another passkey first");
    }
    await ctx.db.delete(_id);
    await forgetProofs(ctx, { user }, await hasFactor(ctx, user) ? session._id : null);
    return null;
  },
});

/** Returns a passkey of a user. Throws `passkey_not_found`. */
export async function passkeyOf(
  ctx: AuthQueryCtx,
  user: Id<"_users">,
  passkeyId: string,
): Promise<AuthDoc<"_passkeys">> {
  const id = ctx.db.normalizeId("_passkeys", passkeyId);
  const passkey = id === null ? null : await ctx.db.get(id);
  if (passkey?.user !== user) throw new UserError("passkey_not_found", "The passkey does not exist");
  return passkey;
}

function refuseMore(passkeys: readonly unknown[]): void {
  if (passkeys.length < authLimits.passkeysPerUserMax) return;
  throw new UserError(
    "too_many_passkeys",
    `The account has reached the maximum of ${authLimits.passkeysPerUserMax} passkeys`,
  );
}

function descriptorOf({ credentialId, transports }: AuthDoc<"_passkeys">): CredentialDescriptor {
  return { id: credentialId, transports };
}
