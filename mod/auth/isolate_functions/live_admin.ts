/** Access check of administrator functions. */
import type { AuthQueryCtx } from "../tables.ts";

/**
 * Whether the caller has an administrator session whose row and administrator exist in this snapshot. Expiry is not checked:
 * no access token outlives its session, and the caller has presented one.
 */
export async function admitsAdmin(ctx: AuthQueryCtx): Promise<boolean> {
  const [admin, sessionId] = [ctx.auth.adminId(), ctx.auth.sessionId()];
  if (admin === null || sessionId === null) return false;
  const id = ctx.db.normalizeId("_sessions", sessionId);
  const session = id === null ? null : await ctx.db.get(id);
  return session !== null && session.admin === admin && await ctx.db.get(admin) !== null;
}
