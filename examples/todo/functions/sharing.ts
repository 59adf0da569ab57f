/** Sharing a list: a signed-in user who opens its link becomes a member. */
import { type Id, id, UserError } from "syncline/server";
import { z } from "zod";
import { ownList, requireUser, sharedList } from "./access.ts";
import { mutation } from "./schema.ts";

/** A list has at most this many members beside its owner, and a user is let into at most this many lists. */
export const MEMBERS_MAX = 100;

/** The secret part of the link that lets others into my list; the same until {@linkcode stop}. */
export const invite = mutation({
  args: { list: id("lists") },
  handler: async (ctx, { list }): Promise<string> => {
    const known = (await ownList(ctx, list)).invite;
    if (known !== undefined) return known;
    const invite = crypto.randomUUID();
    await ctx.db.patch(list, { invite });
    return invite;
  },
});

/** Makes the caller a member of the list of a link, and returns the list. */
export const join = mutation({
  args: { invite: z.string().max(100) },
  handler: async (ctx, { invite }): Promise<Id<"lists">> => {
    const user = requireUser(ctx);
    const list = await ctx.db.query("lists").withIndex("by_invite", (q) => q.eq("invite", invite)).first();
    if (list === null) throw new UserError("no_invite", "This link does not work any more");
    const members = ctx.db.query("members");
    const ofList = await members.withIndex("by_list_user", (q) => q.eq("list", list._id)).take(MEMBERS_MAX);
    if (list.owner === user || ofList.some((member) => member.user === user)) return list._id;
    const mine = await members.withIndex("by_user", (q) => q.eq("user", user)).take(MEMBERS_MAX);
    if (ofList.length === MEMBERS_MAX || mine.length === MEMBERS_MAX) {
      throw new UserError("too_many", `A list has at most ${MEMBERS_MAX} members, and a user as many lists`);
    }
    await ctx.db.insert("members", { list: list._id, user });
    return list._id;
  },
});

/** Disables the link and removes all members. */
export const stop = mutation({
  args: { list: id("lists") },
  handler: async (ctx, { list }): Promise<void> => {
    await ownList(ctx, list);
    await ctx.db.patch(list, { invite: undefined });
    for await (
      const { _id } of ctx.db.query("members").withIndex("by_list_user", (q) => q.eq("list", list))
    ) {
      await ctx.db.delete(_id);
    }
  },
});

/** Ends the membership of the caller. */
export const leave = mutation({
  args: { list: id("lists") },
  handler: async (ctx, { list }): Promise<void> => {
    await sharedList(ctx, list);
    const user = requireUser(ctx);
    const member = await ctx.db.query("members")
      .withIndex("by_list_user", (q) => q.eq("list", list).eq("user", user)).first();
    if (member !== null) await ctx.db.delete(member._id);
  },
});
