/** Functions that clients call about their own account, at `_auth`. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import type { Id } from "../../functions/api/service.ts";
import { authLimits } from "../limits.ts";
import { deviceOf } from "../user_agent.ts";
import {
  type AuthDoc,
  type AuthMutationCtx,
  type AuthQueryCtx,
  internalMutation,
  mutation,
  type Owner,
  query,
} from "../tables.ts";
import { passwordHashOf, setPasswordHash } from "./account_rows.ts";
import { isAnonymous, refuseAnonymous } from "./anonymous_rows.ts";
import { requireConfirmation } from "./factors/factor_rows.ts";
import { endSession, endSessionsOf, sessionsOf } from "./session_rows.ts";

interface OwnAccount {
  readonly userId: Id<"_users">;
  readonly email: string | null;
  readonly emailVerified: boolean;
  readonly name: string | null;
  readonly hasPassword: boolean;
  /** Whether the user signed in without an account. */
  readonly anonymous: boolean;
  /** The app's profile of the user; `null` if it is empty. */
  readonly profile: Readonly<Record<string, unknown>> | null;
}

/** Returns the caller's account; `null` for anonymous callers and administrators. */
export const account = query({
  args: {},
  handler: async (ctx): Promise<OwnAccount | null> => {
    const userId = ctx.auth.userId();
    const user = userId === null ? null : await ctx.db.get(userId);
    if (user === null) return null;
    const { _id, email = null, emailVerified, name = null, profile = null } = user;
    const hasPassword = await passwordHashOf(ctx, _id) !== null;
    const anonymous = await isAnonymous(ctx, _id);
    return { userId: _id, email, emailVerified, name, hasPassword, anonymous, profile };
  },
});

/** Changes the caller's display name. */
export const setName = mutation({
  args: { name: z.string().trim().max(authLimits.nameCharsMax) },
  handler: async (ctx, { name }) => {
    await ctx.db.patch(signedInUser(ctx), { name: name === "" ? undefined : name });
    return null;
  },
});

interface OwnSession {
  readonly sessionId: Id<"_sessions">;
  /** Whether this is the caller's current session. */
  readonly current: boolean;
  readonly createdAt: number;
  readonly refreshedAt: number;
  readonly expiresAt: number;
  readonly userAgent: string | null;
  /** Browser or program in words; `null` if unknown. */
  readonly browser: string | null;
  /** Operating system or kind of device in words; `null` if unknown. */
  readonly system: string | null;
  /** Whether an administrator impersonates the user in it. */
  readonly impersonated: boolean;
}

/** Returns the caller's sessions, newest first. */
export const listSessions = query({
  args: {},
  handler: async (ctx): Promise<OwnSession[]> => {
    const owner = caller(ctx);
    const current = ctx.auth.sessionId();
    return (await sessionsOf(ctx, owner)).reverse().map((session) => ({
      sessionId: session._id,
      current: session._id === current,
      createdAt: session._creationTime,
      refreshedAt: session.refreshedAt,
      expiresAt: session.expiresAt,
      userAgent: session.userAgent ?? null,
      ...deviceOf(session.userAgent ?? null),
      impersonated: session.impersonatedBy !== undefined,
    }));
  },
});

/** Ends one of the caller's sessions; the current one is allowed. */
export const signOutSession = mutation({
  args: { sessionId: z.string() },
  handler: async (ctx, args) => {
    const owner = caller(ctx);
    const session = (await sessionsOf(ctx, owner)).find(({ _id }) => _id === args.sessionId);
    if (session === undefined) throw new UserError("session_not_found", "The session does not exist");
    await refuseImpersonator(ctx, { mayEnd: session._id });
    await endSession(ctx, session._id);
    return null;
  },
});

/** Ends all of the caller's sessions, or all others. Returns their number. */
export const signOutEverywhere = mutation({
  args: { keepCurrent: z.boolean().optional() },
  handler: async (ctx, { keepCurrent = false }): Promise<number> => {
    await refuseImpersonator(ctx);
    const except = keepCurrent ? currentSession(ctx) : null;
    return await endSessionsOf(ctx, caller(ctx), { except });
  },
});

/**
 * Returns what main needs to check a password before changing an account. Throws if the caller may not change it. Without a
 * password, the session must have been confirmed recently.
 */
export const ownCredential = internalMutation({
  args: { now: z.number() },
  handler: async (
    ctx,
    { now },
  ): Promise<{ userId: Id<"_users">; email: string | null; hash: string | null }> => {
    await refuseImpersonator(ctx);
    const userId = signedInUser(ctx);
    const user = await ctx.db.get(userId);
    if (user === null) throw notSignedIn();
    await refuseAnonymous(ctx, userId);
    const hash = await passwordHashOf(ctx, userId);
    if (hash === null) await requireConfirmedUser(ctx, now);
    return { userId, email: user.email ?? null, hash };
  },
});

/** Sets the caller's password and ends their other sessions; `false` if it was changed in the meantime. */
export const setOwnPassword = internalMutation({
  args: { checkedHash: z.string().nullable(), passwordHash: z.string(), now: z.number() },
  handler: async (ctx, { checkedHash, passwordHash, now }): Promise<boolean> => {
    await refuseImpersonator(ctx);
    const userId = signedInUser(ctx);
    if (await passwordHashOf(ctx, userId) !== checkedHash) return false;
    // It may have ended while the password was hashed.
    if (checkedHash === null) await requireConfirmedUser(ctx, now);
    await setPasswordHash(ctx, userId, passwordHash);
    await endSessionsOf(ctx, { user: userId }, { except: currentSession(ctx) });
    return true;
  },
});

export function caller(ctx: AuthQueryCtx): Owner {
  const user = ctx.auth.userId();
  const admin = ctx.auth.adminId();
  if (user !== null) return { user };
  if (admin !== null) return { admin };
  throw notSignedIn();
}

export function signedInUser(ctx: AuthQueryCtx): Id<"_users"> {
  const user = ctx.auth.userId();
  if (user === null) throw notSignedIn();
  return user;
}

export function currentSession(ctx: AuthQueryCtx): Id<"_sessions"> | null {
  const session = ctx.auth.sessionId();
  return session === null ? null : ctx.db.normalizeId("_sessions", session);
}

/** An impersonating administrator can read the account but not change credentials; ending that session is allowed. */
export async function refuseImpersonator(
  ctx: AuthMutationCtx,
  { mayEnd = null }: { readonly mayEnd?: Id<"_sessions"> | null } = {},
): Promise<void> {
  const id = currentSession(ctx);
  const session: AuthDoc<"_sessions"> | null = id === null ? null : await ctx.db.get(id);
  if (session?.impersonatedBy !== undefined && session._id !== mayEnd) {
    throw new UserError("impersonated", "An impersonated session cannot change the account");
  }
}

export async function ownSession(ctx: AuthQueryCtx): Promise<AuthDoc<"_sessions"> | null> {
  const id = currentSession(ctx);
  return id === null ? null : await ctx.db.get(id);
}

/** Returns the session of a caller who may change how the account is signed in to. */
export async function sessionToChange(ctx: AuthMutationCtx): Promise<AuthDoc<"_sessions">> {
  await refuseImpersonator(ctx);
  caller(ctx);
  const session = await ownSession(ctx);
  if (session === null) {
    throw new UserError("no_session", "This change needs a session of this server");
  }
  return session;
}

/** Throws like `requireConfirmation` unless the calling user confirmed the session recently. */
export async function requireConfirmedUser(ctx: AuthMutationCtx, now: number): Promise<void> {
  const session = await sessionToChange(ctx);
  await requireConfirmation(ctx, { owner: signedInUser(ctx), session, now });
}

export function notSignedIn(): UserError {
  return new UserError("not_signed_in", "Sign in first");
}
