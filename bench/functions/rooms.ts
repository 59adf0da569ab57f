/** Rooms with members, who alone may post to them: an insert behind a rule. */
import { z } from "zod";
import { mutation } from "./schema.ts";

/** Members of each room. */
const MEMBERS = 10;

/** Makes the members of the rooms `start` to `start + count - 1`. */
export const fill = mutation({
  args: { start: z.int(), count: z.int().max(400) },
  handler: async (ctx, { start, count }) => {
    for (let room = start; room < start + count; room++) {
      for (let member = 0; member < MEMBERS; member++) await ctx.db.insert("members", { room, member });
    }
    return null;
  },
});

/** Posts a text to a room, for its members only. */
export const post = mutation({
  args: { room: z.int(), member: z.int(), text: z.string().max(1_000) },
  handler: async (ctx, { room, member, text }) => {
    const membership = await ctx.db.query("members")
      .withIndex("by_room", (q) => q.eq("room", room).eq("member", member)).first();
    if (membership === null) throw new Error(`${member} is no member of ${room}`);
    return await ctx.db.insert("messages", { room, member, text });
  },
});
