/** Anonymous users: signed in without an account, and deleted some time after their last session. */
import { z } from "zod";
import type { Id } from "../../functions/api/service.ts";
import { authLimits } from "../limits.ts";
import { internalMutation, internalQuery } from "../tables.ts";
import { isAnonymous } from "./anonymous_rows.ts";
import { completeSignIn, insertUser, userCreated } from "./hooks.ts";
import { newSessionSchema, type OpenedSession, sessionsOf } from "./session_rows.ts";

/** Creates a user without an address, and opens the only session it will have. */
export const signInAnonymously = internalMutation({
  args: { session: newSessionSchema },
  handler: async (ctx, { session }): Promise<OpenedSession> => {
    const user = await insertUser(ctx, { emailVerified: false });
    await ctx.db.insert("_anonymous_users", { user, checkAt: session.expiresAt, leaving: false });
    const event = { user, by: "anonymous" } as const;
    await userCreated(ctx, event);
    return await completeSignIn(ctx, event, session);
  },
});

interface AnonymousSweep {
  /** Users to delete now. */
  readonly leaving: readonly Id<"_users">[];
  /** Whether more rows may be due. */
  readonly more: boolean;
}

/** Checks anonymous users that may have no session any more. They stay for `keepMs`. */
export const sweepAnonymous = internalMutation({
  args: { now: z.number(), keepMs: z.number() },
  handler: async (ctx, { now, keepMs }): Promise<AnonymousSweep> => {
    const due = await ctx.db.query("_anonymous_users").withIndex("by_check", (q) => q.lte("checkAt", now))
      .take(authLimits.sweepRowsMax);
    const leaving: Id<"_users">[] = [];
    for (const { _id, user, leaving: isLeaving } of due) {
      const sessions = await sessionsOf(ctx, { user });
      const until = Math.max(0, ...sessions.map(({ expiresAt }) => expiresAt));
      // The user was deleted manually.
      if (await ctx.db.get(user) === null) await ctx.db.delete(_id);
      else if (until > now) await ctx.db.patch(_id, { checkAt: until, leaving: false });
      else if (isLeaving) {
        leaving.push(user);
        // Another attempt, if the deletion fails.
        await ctx.db.patch(_id, { checkAt: now + authLimits.sweepIntervalMs });
      } else await ctx.db.patch(_id, { checkAt: now + keepMs, leaving: true });
    }
    return { leaving, more: due.length === authLimits.sweepRowsMax };
  },
});

/** Whether the caller is an anonymous user. */
export const callerIsAnonymous = internalQuery({
  args: {},
  handler: async (ctx): Promise<boolean> => {
    const user = ctx.auth.userId();
    return user !== null && await isAnonymous(ctx, user);
  },
});
