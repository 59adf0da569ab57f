/** Additional identities of a signed-in user: linked through a provider, confirmed by the same session, listed, unlinked. */
import { z } from "zod";
import { serviceErrors, UserError } from "../../../errors.ts";
import type { Id } from "../../../functions/api/service.ts";
import { externalLimits } from "../../limits.ts";
import { internalMutation, query } from "../../tables.ts";
import { identitiesOf, waysIn } from "../account_rows.ts";
import { isAnonymous } from "../anonymous_rows.ts";
import { signIn } from "../factors/challenges.ts";
import { hasFactor } from "../factors/factor_rows.ts";
import {
  notSignedIn,
  refuseImpersonator,
  requireConfirmedUser,
  sessionToChange,
  signedInUser,
} from "../own_account.ts";
import { newSessionSchema, type SignInResult } from "../session_rows.ts";
import { broughtIdentitySchema, eventOf, identityBySubject, link, resolveReturn } from "./identity_rows.ts";

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
 * given the password of an account without a factor.
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
    const confirmed = passwordChecked && !await hasFactor(ctx, user);
    if (!confirmed && !await isAnonymous(ctx, user)) await requireConfirmedUser(ctx, now);
    if ((await identitiesOf(ctx, user)).length >= externalLimits.identitiesPerUserMax) {
      throw new UserError("too_many_identities", "The account has reached the maximum number of identities");
    }
    await ctx.db.insert("_oauth_flows", {
      ...flow,
      // Set when the browser is redirected: until then no return is possible.
      callback: "",
      expiresAt: now + externalLimits.flowMs,
      linkFor: session._id,
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

/** Stores the identity a browser returned with, until the requesting session confirms it. */
export const storeIdentity = internalMutation({
  args: {
    tokenHash: z.string(),
    session: z.string(),
    provider: z.string(),
    identity: broughtIdentitySchema,
    /** Claims of the provider, and whether it may link by address; for anonymous users. */
    signUp: z.object({ claims: z.record(z.string(), z.unknown()), linkByEmail: z.boolean() }),
    now: z.number(),
  },
  handler: async (ctx, { session, identity, signUp, now, ...brought }): Promise<boolean> => {
    const id = ctx.db.normalizeId("_sessions", session);
    const asking = id === null ? null : await ctx.db.get(id);
    if (asking === null) return false;
    const anonymous = asking.user !== undefined && await isAnonymous(ctx, asking.user);
    await ctx.db.insert("_brought_identities", {
      ...brought,
      ...identity,
      ...(anonymous && { signUp }),
      session: asking._id,
      expiresAt: now + externalLimits.linkMs,
    });
    return true;
  },
});

/**
 * Links the returned identity if the caller's session requested it. An anonymous user signs up with it, or signs in as the user to
 * whom it belongs.
 */
export const linkIdentity = internalMutation({
  args: { tokenHash: z.string(), session: newSessionSchema, signups: z.boolean() },
  handler: async (ctx, args): Promise<{ provider: string; signedIn: SignInResult | null }> => {
    const { tokenHash, signups, session: { now } } = args;
    const session = await sessionToChange(ctx);
    const user = signedInUser(ctx);
    if (await ctx.db.get(user) === null) throw notSignedIn();
    const row = await ctx.db.query("_brought_identities")
      .withIndex("by_token", (q) => q.eq("tokenHash", tokenHash)).unique();
    if (row === null || row.expiresAt <= now || row.session !== session._id) {
      throw new UserError(
        "invalid_link",
        "Nothing to link, or the link was requested by another session",
      );
    }
    await ctx.db.delete(row._id);
    const { issuer, subject, email, name, provider, signUp } = row;
    const identity = {
      issuer,
      subject,
      ...(email !== undefined && { email }),
      ...(name !== undefined && { name }),
    };
    if (signUp !== undefined && await isAnonymous(ctx, user)) {
      const arrival = { identity, provider, ...signUp, signups, takenEmail: "refuse" as const };
      const next = { ...args.session, userAgent: session.userAgent, priorSession: session._id };
      const arrived = await resolveReturn(ctx, arrival, next);
      if (!arrived.ok) throw new UserError(arrived.error, serviceErrors[arrived.error][1]);
      return { provider, signedIn: await signIn(ctx, eventOf(arrived.user, arrival), next) };
    }
    const known = await identityBySubject(ctx, { issuer, subject });
    if (known !== null && known.user === user) return { provider, signedIn: null };
    if (known !== null && await ctx.db.get(known.user) !== null) {
      throw new UserError("identity_in_use", "This identity belongs to another account");
    }
    if (known !== null) await ctx.db.delete(known._id);
    if ((await identitiesOf(ctx, user)).length >= externalLimits.identitiesPerUserMax) {
      throw new UserError("too_many_identities", "The account has reached the maximum number of identities");
    }
    await link(ctx, { user, identity, provider });
    return { provider, signedIn: null };
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
