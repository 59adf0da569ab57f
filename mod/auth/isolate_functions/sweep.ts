/** Deletes expired rows in bounded batches. */
import { z } from "zod";
import { authLimits } from "../limits.ts";
import { internalMutation } from "../tables.ts";
import { dropExpiredFlows } from "./identities/flows.ts";
import { endSession } from "./session_rows.ts";

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
    return moreFlows || [codes, sessions, tokens].some((deleted) => deleted.length === rows);
  },
});
