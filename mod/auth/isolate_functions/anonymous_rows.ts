/** Rows of anonymous users within a transaction: a user is anonymous while it has one. */
import type { Id } from "../../functions/api/service.ts";
import { UserError } from "../../errors.ts";
import type { AuthDoc, AuthMutationCtx, AuthQueryCtx } from "../tables.ts";

export async function isAnonymous(ctx: AuthQueryCtx, user: Id<"_users">): Promise<boolean> {
  return await anonymousRow(ctx, user) !== null;
}

/** Throws `anonymous_user`: an anonymous user has no account whose credentials could change. */
export async function refuseAnonymous(ctx: AuthQueryCtx, user: Id<"_users">): Promise<void> {
  if (await isAnonymous(ctx, user)) {
    throw new UserError("anonymous_user", "Sign up first: an anonymous user has no account to change");
  }
}

/** Returns the anonymous user of a session, unless an administrator impersonates them; `null` for all other sessions. */
export async function anonymousUserOf(
  ctx: AuthQueryCtx,
  sessionId: string | undefined,
): Promise<AuthDoc<"_users"> | null> {
  const id = sessionId === undefined ? null : ctx.db.normalizeId("_sessions", sessionId);
  const session = id === null ? null : await ctx.db.get(id);
  if (session?.user === undefined || session.impersonatedBy !== undefined) return null;
  return await isAnonymous(ctx, session.user) ? await ctx.db.get(session.user) : null;
}

/** The user is no longer anonymous, or no longer exists. */
export async function endAnonymity(ctx: AuthMutationCtx, user: Id<"_users">): Promise<void> {
  const row = await anonymousRow(ctx, user);
  if (row !== null) await ctx.db.delete(row._id);
}

/** Has the next sweep check whether an anonymous user has sessions left. */
export async function checkAnonymous(ctx: AuthMutationCtx, user: Id<"_users">): Promise<void> {
  const row = await anonymousRow(ctx, user);
  if (row !== null && !row.leaving) await ctx.db.patch(row._id, { checkAt: 0 });
}

function anonymousRow(
  ctx: AuthQueryCtx,
  user: Id<"_users">,
): Promise<AuthDoc<"_anonymous_users"> | null> {
  return ctx.db.query("_anonymous_users").withIndex("by_user", (q) => q.eq("user", user)).unique();
}
