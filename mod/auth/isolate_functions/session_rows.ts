/** Creates, deletes and summarizes the rows of sessions within a transaction. */
import { z } from "zod";
import { authLimits } from "../limits.ts";
import type { Id } from "../../functions/api/service.ts";
import { type AuthDoc, type AuthMutationCtx, type AuthQueryCtx, idOf, type Owner } from "../tables.ts";
import { checkAnonymous } from "./anonymous_rows.ts";
import { type NewDevice, recordDevice } from "./device_rows.ts";
import { dropChallenges } from "./factors/factor_rows.ts";

/** Hashes and ids of a new session; the token itself never leaves main. */
export const newSessionSchema = z.object({
  family: z.string(),
  tokenHash: z.string(),
  /** Hash of the challenge, which is used instead if a second factor is needed. */
  challengeHash: z.string(),
  /** Start of the session, by main's clock. */
  now: z.number(),
  expiresAt: z.number(),
  userAgent: z.string().optional(),
  /** Client address; stored for administrators only. */
  address: z.string().optional(),
  /** Session of the client before it signs in. That of an anonymous user is replaced. */
  priorSession: z.string().optional(),
});
export type NewSession = z.infer<typeof newSessionSchema>;

/** The fields of a session that main needs to issue tokens. */
export interface OpenedSession {
  readonly sessionId: Id<"_sessions">;
  readonly userId: Id<"_users"> | null;
  readonly adminId: Id<"_admins"> | null;
  readonly expiresAt: number;
  /** Set by a sign-in from a new device. */
  readonly newDevice?: NewDevice;
}

/** A session, or the end of a challenge for a second factor. */
export type SignInResult = OpenedSession | { readonly challengeExpiresAt: number };

interface OpenSessionOptions {
  readonly session: NewSession;
  /** When the second factor was proved. */
  readonly factorAt?: number;
  /** Set if an administrator impersonates the user: the expiry of such a session is fixed. */
  readonly impersonatedBy?: { readonly admin: Id<"_admins">; readonly session: Id<"_sessions"> };
}

/** Opens a session. If the account has too many, the oldest one ends. */
export async function openSession(
  ctx: AuthMutationCtx,
  owner: Owner,
  { session, factorAt, impersonatedBy }: OpenSessionOptions,
): Promise<OpenedSession> {
  const { family, tokenHash, now, expiresAt, userAgent, address } = session;
  const existing = await sessionsOf(ctx, owner);
  for (const old of existing.slice(0, Math.max(0, existing.length + 1 - authLimits.sessionsPerOwnerMax))) {
    await endSession(ctx, old._id);
  }
  const sessionId = await ctx.db.insert("_sessions", {
    ...owner,
    expiresAt,
    refreshedAt: now,
    ...(impersonatedBy !== undefined && {
      impersonatedBy: impersonatedBy.admin,
      impersonatorSession: impersonatedBy.session,
    }),
    ...(factorAt !== undefined && { factorAt }),
    ...(userAgent !== undefined && { userAgent }),
    ...("admin" in owner && address !== undefined && { address }),
  });
  const row = { session: sessionId, family, generation: 0, hash: tokenHash, expiresAt, rotations: [] };
  await ctx.db.insert("_refresh_tokens", row);
  const [userId, adminId] = "user" in owner ? [owner.user, null] : [null, owner.admin];
  const newDevice = impersonatedBy === undefined
    ? await recordDevice(ctx, owner, { userAgent, now, sessions: existing })
    : null;
  return { sessionId, userId, adminId, expiresAt, ...newDevice !== null && { newDevice } };
}

/** Ends a session if it is active. Ending an administrator's session also ends their impersonation sessions. */
export async function endSession(ctx: AuthMutationCtx, sessionId: Id<"_sessions">): Promise<void> {
  const impersonated = await ctx.db.query("_sessions")
    .withIndex("by_impersonator", (q) => q.eq("impersonatorSession", sessionId)).collect();
  for (const session of impersonated) await endSession(ctx, session._id);
  const tokens = await ctx.db.query("_refresh_tokens")
    .withIndex("by_session", (q) => q.eq("session", sessionId)).collect();
  for (const token of tokens) await ctx.db.delete(token._id);
  const session = await ctx.db.get(sessionId);
  if (session === null) return;
  await ctx.db.delete(sessionId);
  if (session.user !== undefined) await checkAnonymous(ctx, session.user);
}

/**
 * Ends the sessions of an account, all or all but one, and its sign-ins that wait for a second factor. Returns the number of
 * sessions.
 */
export async function endSessionsOf(
  ctx: AuthMutationCtx,
  owner: Owner,
  { except = null }: { readonly except?: Id<"_sessions"> | null } = {},
): Promise<number> {
  const ending = (await sessionsOf(ctx, owner)).filter((session) => session._id !== except);
  for (const session of ending) await endSession(ctx, session._id);
  await dropChallenges(ctx, idOf(owner));
  return ending.length;
}

/** Returns the sessions of an account, oldest first. */
export function sessionsOf(ctx: AuthQueryCtx, owner: Owner): Promise<AuthDoc<"_sessions">[]> {
  const sessions = ctx.db.query("_sessions");
  return "user" in owner
    ? sessions.withIndex("by_user", (q) => q.eq("user", owner.user)).collect()
    : sessions.withIndex("by_admin", (q) => q.eq("admin", owner.admin)).collect();
}

/** Returns the owner of a session; `null` if the account is gone, which means that the session has ended. */
export async function ownerOf(ctx: AuthQueryCtx, session: AuthDoc<"_sessions">): Promise<Owner | null> {
  if (session.user !== undefined) {
    return await ctx.db.get(session.user) === null ? null : { user: session.user };
  }
  if (session.admin === undefined || await ctx.db.get(session.admin) === null) return null;
  return { admin: session.admin };
}

export interface SessionSummary {
  readonly sessionId: Id<"_sessions">;
  readonly createdAt: number;
  readonly refreshedAt: number;
  readonly expiresAt: number;
  readonly userAgent: string | null;
  /** For administrators only. */
  readonly address: string | null;
  /** The impersonating administrator; `null` for the user's own session. */
  readonly impersonatedBy: Id<"_admins"> | null;
}

export function sessionSummary(session: AuthDoc<"_sessions">): SessionSummary {
  return {
    sessionId: session._id,
    createdAt: session._creationTime,
    refreshedAt: session.refreshedAt,
    expiresAt: session.expiresAt,
    userAgent: session.userAgent ?? null,
    address: session.address ?? null,
    impersonatedBy: session.impersonatedBy ?? null,
  };
}
