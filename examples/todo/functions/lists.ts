/** The lists of the signed-in user. */
import { id, UserError } from "syncline/server";
import { z } from "zod";
import { ownList, requireUser } from "./access.ts";
import { mutation, query } from "./schema.ts";

/** A user has at most this many lists. */
const LISTS_MAX = 100;
/** A list keeps at most this many items, so that it can be removed in one transaction. */
export const ITEMS_MAX = 5_000;

/** My lists in alphabetical order; none for those who are not signed in. */
export const mine = query({
  args: {},
  handler: async (ctx) => {
    const owner = ctx.auth.userId();
    if (owner === null) return [];
    const lists = await ctx.db.query("lists").withIndex("by_owner_title", (q) => q.eq("owner", owner))
      .take(LISTS_MAX);
    return lists.map(({ _id, title }) => ({ _id, title }));
  },
});

/** Adds a list, or gives back the one with this title. */
export const create = mutation({
  args: { title: z.string().max(80) },
  handler: async (ctx, args) => {
    const owner = requireUser(ctx);
    const title = args.title.trim();
    if (title === "") throw new UserError("no_title", "Give the list a name", { field: "title" });
    const lists = ctx.db.query("lists");
    const known = await lists.withIndex("by_owner_title", (q) => q.eq("owner", owner).eq("title", title))
      .first();
    if (known !== null) return known._id;
    const all = await lists.withIndex("by_owner_title", (q) => q.eq("owner", owner)).take(LISTS_MAX);
    if (all.length === LISTS_MAX) {
      throw new UserError("too_many", `You have ${LISTS_MAX} lists, which is the most`);
    }
    return await ctx.db.insert("lists", { owner, title });
  },
});

/** Removes a list with everything in it. */
export const remove = mutation({
  args: { list: id("lists") },
  handler: async (ctx, { list }) => {
    await ownList(ctx, list);
    for await (const item of ctx.db.query("items").withIndex("by_list", (q) => q.eq("list", list))) {
      await ctx.db.delete(item._id);
    }
    await ctx.db.delete(list);
  },
});
