/** Who passes to functions for administrators. */
import type { AuthQueryCtx } from "../tables.ts";

/**
 * Whether the caller has an administrator's session whose row, and whose administrator, exist at this moment of the
 * database. Its expiry is not looked at: no access token outlives it, and who calls has shown one.
 */
export async function admitsAdmin(ctx: AuthQueryCtx): Promise<boolean> {
  const [admin, sessionId] = [ctx.auth.adminId(), ctx.auth.sessionId()];
  if (admin === null || sessionId === null) return false;
  const id = ctx.db.normalizeId("_sessions", sessionId);
  const session = id === null ? null : await ctx.db.get(id);
  return session !== null && session.admin === admin && await ctx.db.get(admin) !== null;
}
