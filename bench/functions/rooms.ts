/** Rooms whose members may post messages: an insert with a membership rule. */
import { z } from "zod";
import { mutation } from "./schema.ts";

const MEMBERS_PER_ROOM = 10;

/** Inserts the members of the rooms `start` to `start + count - 1`. */
export const fill = mutation({
  args: { start: z.int(), count: z.int().max(400) },
  handler: async (ctx, { start, count }) => {
    for (let room = start; room < start + count; room++) {
      for (let member = 0; member < MEMBERS_PER_ROOM; member++) {
        await ctx.db.insert("members", { room, member });
      }
    }
    return null;
  },
});

/** Inserts a message if its author is a member of the room. */
export const post = mutation({
  args: { room: z.int(), member: z.int(), text: z.string().max(1_000) },
  handler: async (ctx, { room, member, text }) => {
    const membership = await ctx.db.query("members")
      .withIndex("by_room", (q) => q.eq("room", room).eq("member", member)).first();
    if (membership === null) throw new Error(`${member} is not a member of ${room}`);
    return await ctx.db.insert("messages", { room, member, text });
  },
});
