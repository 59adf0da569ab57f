/** Additional identities of a signed-in user: linked through a provider, confirmed by the same session, listed, unlinked. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import type { Id } from "../../../functions/api/service.ts";
import { externalLimits } from "../../limits.ts";
import { internalMutation, query } from "../../tables.ts";
import { identitiesOf, waysIn } from "../account_rows.ts";
import { isAnonymous } from "../anonymous_rows.ts";
import { hasFactor } from "../factors/factor_rows.ts";
import {
  notSignedIn,
  refuseImpersonator,
  requireConfirmedUser,
  sessionToChange,
  signedInUser,
} from "../own_account.ts";
import { broughtIdentitySchema, identityBySubject, link, takeReturned } from "./identity_rows.ts";

/** An identity that a user can sign in with. */
export interface OwnIdentity {
  readonly identityId: Id<"_identities">;
  /** Configured name of the provider; `null` for tokens of an external issuer. */
  readonly provider: string | null;
  readonly issuer: string;
  readonly email: string | null;
  readonly name: string | null;
  readonly linkedAt: number;
}

/** Returns the caller's identities, oldest first. */
export const listIdentities = query({
  args: {},
  handler: async (ctx): Promise<OwnIdentity[]> =>
    (await identitiesOf(ctx, signedInUser(ctx))).map((row) => ({
      identityId: row._id,
      provider: row.provider ?? null,
      issuer: row.issuer,
      email: row.email ?? null,
      name: row.name ?? null,
      linkedAt: row._creationTime,
    })),
});

/**
 * Stores a sign-in that links an additional identity. It belongs to the session of the caller, who has confirmed it recently or has
 * given the password of an account without a factor. For anonymous users, it is a sign-in like any other.
 */
export const prepareLink = internalMutation({
  args: {
    stateHash: z.string(),
    provider: z.string(),
    redirectTo: z.string(),
    passwordChecked: z.boolean(),
    now: z.number(),
  },
  handler: async (ctx, { passwordChecked, now, ...flow }): Promise<null> => {
    const session = await sessionToChange(ctx);
    const user = signedInUser(ctx);
    const anonymous = await isAnonymous(ctx, user);
    const confirmed = anonymous || passwordChecked && !await hasFactor(ctx, user);
    if (!confirmed) await requireConfirmedUser(ctx, now);
    if ((await identitiesOf(ctx, user)).length >= externalLimits.identitiesPerUserMax) {
      throw new UserError("too_many_identities", "The account has reached the maximum number of identities");
    }
    await ctx.db.insert("_oauth_flows", {
      ...flow,
      // Set when the browser is redirected: until then no return is possible.
      callback: "",
      expiresAt: now + externalLimits.flowMs,
      ...(!anonymous && { linkFor: session._id }),
    });
    return null;
  },
});

/** Starts a prepared link. Works once. Returns the final redirect URL, or `null`. */
export const beginLink = internalMutation({
  args: {
    stateHash: z.string(),
    provider: z.string(),
    callback: z.string(),
    appState: z.string().optional(),
    now: z.number(),
  },
  handler: async (ctx, { stateHash, provider, callback, appState, now }): Promise<string | null> => {
    const flow = await ctx.db.query("_oauth_flows")
      .withIndex("by_state", (q) => q.eq("stateHash", stateHash)).unique();
    if (flow === null || flow.provider !== provider || flow.callback !== "" || flow.expiresAt <= now) {
      return null;
    }
    await ctx.db.patch(flow._id, { callback, ...(appState !== undefined && { appState }) });
    return flow.redirectTo;
  },
});

/** Stores the identity a browser returned with. Returns `false` if the session that requested the link has ended. */
export const storeIdentity = internalMutation({
  args: {
    tokenHash: z.string(),
    /** The session that links it; `null` for a sign-in. */
    session: z.string().nullable(),
    provider: z.string(),
    identity: broughtIdentitySchema,
    signUp: z.object({ claims: z.record(z.string(), z.unknown()), linkByEmail: z.boolean() }),
    now: z.number(),
  },
  handler: async (ctx, { session, identity, signUp, now, ...brought }): Promise<boolean> => {
    const id = session === null ? null : ctx.db.normalizeId("_sessions", session);
    if (session !== null && (id === null || await ctx.db.get(id) === null)) return false;
    await ctx.db.insert("_brought_identities", {
      ...brought,
      ...identity,
      ...(id === null ? { signUp } : { session: id }),
      expiresAt: now + externalLimits.linkMs,
    });
    return true;
  },
});

/** Links the returned identity if the caller's session requested it. Returns the name of its provider. */
export const linkIdentity = internalMutation({
  args: { tokenHash: z.string(), now: z.number() },
  handler: async (ctx, args): Promise<string> => {
    const session = await sessionToChange(ctx);
    const user = signedInUser(ctx);
    if (await ctx.db.get(user) === null) throw notSignedIn();
    const returned = await takeReturned(ctx, args);
    if (returned?.session !== session._id) {
      throw new UserError(
        "invalid_link",
        "Nothing to link, or the link was requested by another session",
      );
    }
    const { identity, provider } = returned;
    const known = await identityBySubject(ctx, identity);
    if (known !== null && known.user === user) return provider;
    if (known !== null && await ctx.db.get(known.user) !== null) {
      throw new UserError("identity_in_use", "This identity belongs to another account");
    }
    if (known !== null) await ctx.db.delete(known._id);
    if ((await identitiesOf(ctx, user)).length >= externalLimits.identitiesPerUserMax) {
      throw new UserError("too_many_identities", "The account has reached the maximum number of identities");
    }
    await link(ctx, { user, identity, provider });
    return provider;
  },
});

/** Unlinks one of the caller's identities. Refuses the last way to sign in. */
export const unlinkIdentity = internalMutation({
  args: {
    identityId: z.string(),
    /** Whether a verified address can be used to sign in, because mail can be sent to it. */
    mail: z.boolean(),
  },
  handler: async (ctx, { identityId, mail }): Promise<null> => {
    await refuseImpersonator(ctx);
    const user = signedInUser(ctx);
    const account = await ctx.db.get(user);
    const identities = await identitiesOf(ctx, user);
    const identity = identities.find(({ _id }) => _id === identityId);
    if (account === null || identity === undefined) {
      throw new UserError("identity_not_found", "The identity does not exist");
    }
    if (await waysIn(ctx, account, { mail }) < 2) {
      throw new UserError("last_way_in", "Set a password or link another identity first");
    }
    await ctx.db.delete(identity._id);
    return null;
  },
});
