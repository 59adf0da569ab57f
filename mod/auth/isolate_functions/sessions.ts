/** Looks up, refreshes and ends sessions (RT), and deletes expired rows. */
import { z } from "zod";
import type { Id } from "../../functions/api/service.ts";
import { authLimits } from "../limits.ts";
import { type AuthDoc, type AuthMutationCtx, internalMutation, internalQuery } from "../tables.ts";
import { endSession, newSessionSchema, type OpenedSession, openSession, ownerOf } from "./session_rows.ts";
import { dropExpiredChallenges } from "./factors/factor_rows.ts";
import { dropExpiredFlows } from "./identities/flows.ts";

/** Returns a session whose row and account exist, expired or not; otherwise `null`. */
export const findSession = internalQuery({
  args: { sessionId: z.string() },
  handler: async (ctx, args): Promise<OpenedSession | null> => {
    const sessionId = ctx.db.normalizeId("_sessions", args.sessionId);
    const session = sessionId === null ? null : await ctx.db.get(sessionId);
    if (session === null || await ownerOf(ctx, session) === null) return null;
    return opened(session);
  },
});

type RefreshAnswer =
  | {
    readonly kind: "refreshed";
    readonly session: OpenedSession;
    /** When the presented token was rotated: now, or earlier if this attempt repeats one. */
    readonly at: number;
  }
  | { readonly kind: "invalid" | "stale" | "reused" | "expired" };

/** Rotates a refresh token. Reuse of a rotated token ends the session in the same transaction. */
export const refreshSession = internalMutation({
  args: {
    family: z.string(),
    generation: z.int(),
    /** Hash of the presented token. */
    hash: z.string(),
    nextHash: z.string(),
    /** Hash of the client's `attemptId`. */
    attempt: z.string().nullable(),
    /** Client address; stored for administrators only. */
    address: z.string().optional(),
    now: z.number(),
  },
  handler: async (ctx, args): Promise<RefreshAnswer> => {
    const token = await ctx.db.query("_refresh_tokens")
      .withIndex("by_family", (q) => q.eq("family", args.family)).unique();
    const session = token === null ? null : await ctx.db.get(token.session);
    if (token === null || session === null || await ownerOf(ctx, session) === null) {
      return { kind: "invalid" };
    }
    if (args.generation < token.generation) {
      return await answerRotated(ctx, { token, session, presented: args });
    }
    // The hashes are keyed, so the timing of this comparison reveals nothing about a token.
    if (args.generation > token.generation || args.hash !== token.hash) return { kind: "invalid" };
    if (session.expiresAt <= args.now) return { kind: "expired" };

    const { _id, _creationTime, ...fields } = token;
    const expiresAt = session.impersonatedBy === undefined
      ? Math.max(session.expiresAt, args.now + authLimits.sessionMs)
      : session.expiresAt;
    const rotation = {
      generation: token.generation,
      at: args.now,
      ...(args.attempt !== null && { attempt: args.attempt }),
    };
    await ctx.db.replace(_id, {
      ...fields,
      generation: token.generation + 1,
      hash: args.nextHash,
      expiresAt,
      rotations: [...recent(token, args.now), rotation].slice(-authLimits.recentRotationsMax),
    });
    await ctx.db.patch(session._id, {
      expiresAt,
      refreshedAt: args.now,
      ...(session.admin !== undefined && args.address !== undefined && { address: args.address }),
    });
    return { kind: "refreshed", session: { ...opened(session), expiresAt }, at: args.now };
  },
});

interface Rotated {
  readonly token: AuthDoc<"_refresh_tokens">;
  readonly session: AuthDoc<"_sessions">;
  readonly presented: {
    readonly generation: number;
    readonly nextHash: string;
    readonly attempt: string | null;
    readonly now: number;
  };
}

/** Handles an already rotated token: a lost race, a lost response, or a stolen token. */
async function answerRotated(
  ctx: AuthMutationCtx,
  { token, session, presented }: Rotated,
): Promise<RefreshAnswer> {
  const rotation = recent(token, presented.now).find(({ generation }) => generation === presented.generation);
  if (rotation === undefined) {
    await endSession(ctx, session._id);
    return { kind: "reused" };
  }
  // The same attempt yields the same next token. If that is still the newest token, its response was lost.
  const sameAttempt = presented.attempt !== null && rotation.attempt === presented.attempt;
  if (sameAttempt && token.hash === presented.nextHash) {
    return { kind: "refreshed", session: opened(session), at: rotation.at };
  }
  return { kind: "stale" };
}

function recent({ rotations }: AuthDoc<"_refresh_tokens">, now: number) {
  return rotations.filter(({ at }) => now - at < authLimits.refreshGraceMs);
}

/** Ends the session of a refresh token or an id. Does not report whether it existed. */
export const endSessionBy = internalMutation({
  args: { family: z.string().optional(), sessionId: z.string().optional() },
  handler: async (ctx, { family, sessionId }) => {
    const session = sessionId === undefined ? null : ctx.db.normalizeId("_sessions", sessionId);
    if (session !== null) await endSession(ctx, session);
    if (family === undefined) return null;
    const token = await ctx.db.query("_refresh_tokens")
      .withIndex("by_family", (q) => q.eq("family", family)).unique();
    if (token !== null) await endSession(ctx, token.session);
    return null;
  },
});

/** Opens an impersonation session with a fixed expiry; `null` if the user does not exist. */
export const impersonate = internalMutation({
  args: { userId: z.string(), adminId: z.string(), adminSession: z.string(), session: newSessionSchema },
  handler: async (ctx, { userId, adminId, adminSession, session }): Promise<OpenedSession | null> => {
    const user = ctx.db.normalizeId("_users", userId);
    const admin = ctx.db.normalizeId("_admins", adminId);
    if (user === null || await ctx.db.get(user) === null) return null;
    if (admin === null || await ctx.db.get(admin) === null) return null;
    const own = ctx.db.normalizeId("_sessions", adminSession);
    if (own === null || (await ctx.db.get(own))?.admin !== admin) return null;
    return await openSession(ctx, { user }, { session, impersonatedBy: { admin, session: own } });
  },
});

function opened({ _id, user, admin, expiresAt }: AuthDoc<"_sessions">): OpenedSession {
  const none = null as Id<"_users"> & Id<"_admins"> | null;
  return { sessionId: _id, userId: user ?? none, adminId: admin ?? none, expiresAt };
}

/** Deletes expired codes and sign-ins, and long expired sessions. Returns whether more may remain. */
export const sweep = internalMutation({
  args: { now: z.number() },
  handler: async (ctx, { now }): Promise<boolean> => {
    const rows = authLimits.sweepRowsMax;
    const longAgo = now - authLimits.expiredSessionKeptMs;
    const codes = await ctx.db.query("_codes").withIndex("by_expiry", (q) => q.lte("expiresAt", now)).take(
      rows,
    );
    for (const code of codes) await ctx.db.delete(code._id);
    const sessions = await ctx.db.query("_sessions")
      .withIndex("by_expiry", (q) => q.lte("expiresAt", longAgo)).take(rows);
    for (const session of sessions) await endSession(ctx, session._id);
    // Refresh tokens of sessions whose row was deleted manually.
    const tokens = await ctx.db.query("_refresh_tokens")
      .withIndex("by_expiry", (q) => q.lte("expiresAt", longAgo)).take(rows);
    for (const token of tokens) await ctx.db.delete(token._id);
    const moreFlows = await dropExpiredFlows(ctx, { now, rows });
    const moreChallenges = await dropExpiredChallenges(ctx, { now, rows });
    return moreFlows || moreChallenges ||
      [codes, sessions, tokens].some((deleted) => deleted.length === rows);
  },
});
