/** The passkeys of the caller: listed, registered, named, proved, removed. Main has checked the answers of authenticators. */
import { z } from "zod";
import { serviceErrors, UserError } from "../../../errors.ts";
import type { Id } from "../../../functions/api/service.ts";
import { authLimits } from "../../limits.ts";
import {
  adminMutation,
  type AuthDoc,
  type AuthMutationCtx,
  type AuthQueryCtx,
  idOf,
  internalMutation,
  mutation,
  query,
} from "../../tables.ts";
import { forgetProofs, waysIn } from "../account_rows.ts";
import { anonymousUserOf, refuseAnonymous } from "../anonymous_rows.ts";
import { completeSignIn, promote, userAdmitted } from "../hooks.ts";
import { newSessionSchema, type OpenedSession } from "../session_rows.ts";
import { caller, notSignedIn, refuseImpersonator, sessionToChange, signedInUser } from "../own_account.ts";
import { accountOf, hasFactor, passkeysOf, requireFreshFactor } from "./factor_rows.ts";
import { type CredentialOwner, credentialOwner, ownId } from "./own_factors.ts";
import {
  openChallengeSchema,
  passkeyByCredential,
  type PasskeyRefusal,
  passkeyUseSchema,
  useChallenge,
  usePasskey,
} from "./passkey_rows.ts";

/** A passkey as its owner sees it. Times are milliseconds since the epoch. */
export interface OwnPasskey {
  readonly passkeyId: Id<"_passkeys">;
  readonly name: string;
  readonly createdAt: number;
  /** `null` if it was never used. */
  readonly lastUsedAt: number | null;
  /** Whether it is backed up, and so survives the loss of the device. */
  readonly backedUp: boolean;
}

/** Returns the caller's passkeys, oldest first; `null` for anonymous callers. */
export const listPasskeys = query({
  args: {},
  handler: async (ctx): Promise<OwnPasskey[] | null> => {
    const owner = ctx.auth.userId() ?? ctx.auth.adminId();
    return owner === null ? null : await shownPasskeys(ctx, owner);
  },
});

export async function shownPasskeys(ctx: AuthQueryCtx, owner: string): Promise<OwnPasskey[]> {
  return (await passkeysOf(ctx, owner)).map((row) => ({
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
    if (signUpRefusal !== null && owner.anonymous) {
      throw new UserError(signUpRefusal, serviceErrors[signUpRefusal][1]);
    }
    const passkeys = await passkeysOf(ctx, owner.owner);
    refuseMore(passkeys);
    return { ...owner, credentials: passkeys.map(descriptorOf) };
  },
});

const newPasskey = {
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
};

/**
 * Stores a passkey whose registration main has checked. The registration counts as a proof in the session. Anonymous users sign up
 * with `signUpWithPasskey` instead, which gives them another session.
 */
export const addPasskey = internalMutation({
  args: { ...newPasskey, now: z.number() },
  handler: async (
    ctx,
    { now, ...passkey },
  ): Promise<{ readonly passkeyId: Id<"_passkeys"> } | { readonly refused: "invalid_challenge" }> => {
    const session = await sessionToChange(ctx);
    const [owner, user] = [ownId(ctx), ctx.auth.userId()];
    if (user !== null) await refuseAnonymous(ctx, user);
    const passkeyId = await insertPasskey(ctx, owner, passkey);
    if (passkeyId === null) return { refused: "invalid_challenge" };
    await ctx.db.patch(session._id, { factorAt: now });
    return { passkeyId };
  },
});

/** Promotes the anonymous user of the prior session, who keeps id and documents, with a passkey whose registration main has checked. */
export const signUpWithPasskey = internalMutation({
  args: { ...newPasskey, session: newSessionSchema },
  handler: async (
    ctx,
    { session, ...passkey },
  ): Promise<OpenedSession | { readonly refused: "invalid_challenge" }> => {
    const anonymous = await anonymousUserOf(ctx, session.priorSession);
    if (anonymous === null || await insertPasskey(ctx, anonymous._id, passkey) === null) {
      return { refused: "invalid_challenge" };
    }
    const event = { user: anonymous._id, by: "passkey" } as const;
    await userAdmitted(ctx, event, await promote(ctx, anonymous._id));
    return await completeSignIn(ctx, event, session, { factorAt: session.now });
  },
});

/** Returns the id of a new passkey; `null` if the challenge was used. Throws `passkey_exists`, `too_many_passkeys`, `not_signed_in`. */
async function insertPasskey(
  ctx: AuthMutationCtx,
  owner: string,
  { challenge, credential, name }: z.infer<z.ZodObject<typeof newPasskey>>,
): Promise<Id<"_passkeys"> | null> {
  if (await accountOf(ctx, owner) === null) throw notSignedIn();
  if (!await useChallenge(ctx, challenge)) return null;
  refuseMore(await passkeysOf(ctx, owner));
  const taken = await passkeyByCredential(ctx, credential.credentialId);
  if (taken !== null && await accountOf(ctx, taken.owner) !== null) {
    throw new UserError("passkey_exists", "This passkey is registered already");
  }
  // Its account was deleted manually.
  if (taken !== null) await ctx.db.delete(taken._id);
  return await ctx.db.insert("_passkeys", { owner, ...credential, name });
}

/** Returns the caller's session and passkeys, to ask for a proof. Throws `no_session`. */
export const passkeysToProve = internalMutation({
  args: {},
  handler: async (ctx): Promise<{ session: Id<"_sessions">; credentials: CredentialDescriptor[] }> => {
    const session = await sessionToChange(ctx);
    const passkeys = await passkeysOf(ctx, ownId(ctx));
    return { session: session._id, credentials: passkeys.map(descriptorOf) };
  },
});

/** Records in the caller's session that a passkey was proved. Returns why it was refused, or `null`. */
export const provePasskey = internalMutation({
  args: { use: passkeyUseSchema, now: z.number() },
  handler: async (ctx, { use, now }): Promise<PasskeyRefusal | null> => {
    const session = await sessionToChange(ctx);
    const owner = ownId(ctx);
    const account = await usePasskey(ctx, use, { now, isOwner: (account) => idOf(account) === owner });
    if (typeof account === "string") return account;
    await ctx.db.patch(session._id, { factorAt: now });
    return null;
  },
});

const newName = {
  passkeyId: z.string(),
  name: z.string().trim().min(1).max(authLimits.passkeyNameCharsMax),
};

/** Changes the name of one of the calling user's passkeys. */
export const renamePasskey = mutation({
  args: newName,
  handler: async (ctx, { passkeyId, name }): Promise<null> => {
    await refuseImpersonator(ctx);
    await ctx.db.patch((await passkeyOf(ctx, signedInUser(ctx), passkeyId))._id, { name });
    return null;
  },
});

/** Like {@linkcode renamePasskey}, for administrators, where it is audited. */
export const renamePasskeyOfAdmin = adminMutation({
  args: newName,
  handler: async (ctx, { passkeyId, name }): Promise<null> => {
    await ctx.db.patch((await passkeyOf(ctx, ownId(ctx), passkeyId))._id, { name });
    return null;
  },
});

/**
 * Removes one of the caller's passkeys soon after a proof. Refuses a user's last way to sign in; administrators have a password. Proofs
 * in other sessions no longer count.
 */
export const removePasskey = internalMutation({
  args: { passkeyId: z.string(), mail: z.boolean(), now: z.number() },
  handler: async (ctx, { passkeyId, mail, now }): Promise<null> => {
    const session = await sessionToChange(ctx);
    const owner = ownId(ctx);
    const { _id } = await passkeyOf(ctx, owner, passkeyId);
    await requireFreshFactor(ctx, { owner, session, now });
    const id = ctx.auth.userId();
    const user = id === null ? null : await ctx.db.get(id);
    if (user !== null && await waysIn(ctx, user, { mail }) < 2) {
      throw new UserError("last_way_in", "Set a password or add another passkey first");
    }
    await ctx.db.delete(_id);
    await forgetProofs(ctx, caller(ctx), await hasFactor(ctx, owner) ? session._id : null);
    return null;
  },
});

/** Returns a passkey of an account. Throws `passkey_not_found`. */
export async function passkeyOf(
  ctx: AuthQueryCtx,
  owner: string,
  passkeyId: string,
): Promise<AuthDoc<"_passkeys">> {
  const id = ctx.db.normalizeId("_passkeys", passkeyId);
  const passkey = id === null ? null : await ctx.db.get(id);
  if (passkey?.owner !== owner) throw new UserError("passkey_not_found", "The passkey does not exist");
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
