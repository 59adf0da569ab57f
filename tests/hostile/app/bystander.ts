/** Functions of an ordinary user. */
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";

const me = (ctx: { auth: { userId(): string | null } }) => ctx.auth.userId() ?? "guest";

/** Each nonce makes a different query, so that no result is cached. */
export const look = untypedQuery({
  args: { nonce: z.string() },
  handler: async (ctx, { nonce }) => {
    const mine = ctx.db.query("counters").withIndex("by_user", (q) => q.eq("user", me(ctx)));
    return { nonce, n: (await mine.first())?.n ?? 0 };
  },
});

export const mine = untypedQuery({
  args: {},
  handler: async (ctx) =>
    (await ctx.db.query("counters").withIndex("by_user", (q) => q.eq("user", me(ctx))).first())?.n ?? 0,
});

export const write = untypedMutation({
  args: { n: z.number() },
  handler: async (ctx, { n }) => {
    const user = me(ctx);
    const row = await ctx.db.query("counters").withIndex("by_user", (q) => q.eq("user", user)).first();
    if (row === null) await ctx.db.insert("counters", { user, n });
    else await ctx.db.patch(row._id, { n });
    return n;
  },
});
