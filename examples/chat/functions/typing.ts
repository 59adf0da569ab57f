/** Typing indicators: pages renew their row while the user types. Rows end when the page removes them, or expire. */
import { z } from "zod";
import { internal } from "./_generated.ts";
import { speaker } from "./people.ts";
import { internalMutation, mutation, query } from "./schema.ts";

/** A row that was not renewed for this long is stale; pages renew theirs every three seconds. */
const STALE_MS = 8_000;
/** Rows shown for one channel. */
const SHOWN = 20;
/** Rows removed in one transaction. */
const BATCH = 1_000;

/** People who are typing in a channel. By the ids, a page recognizes its own row. */
export const list = query({
  args: { channel: z.string() },
  handler: async (ctx, { channel }) => {
    const rows = await ctx.db.query("typing").withIndex("by_channel", (q) => q.eq("channel", channel)).take(
      SHOWN,
    );
    return rows.map(({ _id, name }) => ({ _id, name }));
  },
});

/** Says whether the page's person is writing in a channel. Returns the id of its row, `null` when there is none. */
export const set = mutation({
  args: {
    channel: z.string().max(32),
    name: z.string().max(40),
    page: z.uuid(),
    isTyping: z.boolean(),
  },
  handler: async (ctx, { channel, name: guestName, page, isTyping }) => {
    const known = await ctx.db.query("typing").withIndex("by_page", (q) => q.eq("page", page)).first();
    if (!isTyping) {
      if (known !== null) await ctx.db.delete(known._id);
      return null;
    }
    const { name } = await speaker(ctx, guestName);
    const row = { channel, name, page, at: Date.now() };
    if (known === null) return await ctx.db.insert("typing", row);
    await ctx.db.replace(known._id, row);
    return known._id;
  },
});

/** Removes expired rows and returns their number. Further batches follow at once. */
export const removeStale = internalMutation({
  args: {},
  handler: async (ctx) => {
    const stale = await ctx.db.query("typing")
      .withIndex("by_at", (q) => q.lt("at", Date.now() - STALE_MS)).take(BATCH);
    for (const { _id } of stale) await ctx.db.delete(_id);
    if (stale.length === BATCH) await ctx.scheduler.runAfter(0, internal.typing.removeStale);
    return stale.length;
  },
});
