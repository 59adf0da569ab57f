/** Users with an open page. Pages renew their row every ten seconds; a cron job removes the others. */
import { nameOf, signedIn } from "./people.ts";
import { internalMutation, mutation, query } from "./schema.ts";

const STALE_MS = 25_000;

export const list = query({
  args: {},
  handler: async (ctx) => {
    signedIn(ctx);
    const rows = await ctx.db.query("presence").withIndex("by_user").take(50);
    return await Promise.all(rows.map(async ({ user }) => ({ user, name: await nameOf(ctx, user) })));
  },
});

export const renew = mutation({
  args: {},
  handler: async (ctx) => {
    const user = signedIn(ctx);
    const row = await ctx.db.query("presence").withIndex("by_user", (q) => q.eq("user", user)).unique();
    if (row === null) await ctx.db.insert("presence", { user, seenAt: Date.now() });
    else await ctx.db.patch(row._id, { seenAt: Date.now() });
  },
});

export const removeStale = internalMutation({
  args: {},
  handler: async (ctx) => {
    const stale = ctx.db.query("presence").withIndex("by_seen", (q) => q.lt("seenAt", Date.now() - STALE_MS));
    for (const { _id } of await stale.take(500)) await ctx.db.delete(_id);
  },
});
