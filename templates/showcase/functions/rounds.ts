/** The timer that everyone on the board sees. The scheduler ends it, also if all pages are closed. */
import { id, UserError } from "syncline/server";
import { z } from "zod";
import { internal } from "./_generated.ts";
import { signedIn } from "./people.ts";
import { internalMutation, mutation, query } from "./schema.ts";

export const current = query({
  args: {},
  handler: (ctx) => ctx.db.query("rounds").order("desc").first(),
});

export const start = mutation({
  args: { minutes: z.number().min(1).max(60) },
  handler: async (ctx, { minutes }) => {
    signedIn(ctx);
    const last = await ctx.db.query("rounds").order("desc").first();
    if (last?.isOver === false) throw new UserError("running", "The timer is already running");
    const ms = minutes * 60_000;
    const round = await ctx.db.insert("rounds", { endsAt: Date.now() + ms, isOver: false });
    await ctx.scheduler.runAfter(ms, internal.rounds.end, { round });
  },
});

export const end = internalMutation({
  args: { round: id("rounds") },
  handler: (ctx, { round }) => ctx.db.patch(round, { isOver: true }),
});
