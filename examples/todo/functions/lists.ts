/** Lists that the signed-in user owns or is a member of. */
import { id, UserError } from "syncline/server";
import { z } from "zod";
import { ownList, requireUser } from "./access.ts";
import { removeAttachmentsOfList } from "./attachments.ts";
import type { Doc, QueryCtx } from "./_generated.ts";
import { mutation, query } from "./schema.ts";
import { MEMBERS_MAX } from "./sharing.ts";

/** A user has at most this many lists, unless their profile says otherwise. */
const LISTS_MAX = 100;
/** Lists of one's own that are shown. */
const LISTS_SHOWN_MAX = 1_000;
/** A list keeps at most this many items, so that it can be removed in one transaction. */
export const ITEMS_MAX = 5_000;

/** The lists the signed-in user sees: with `shared` only those of others. */
export async function listsOf(ctx: QueryCtx, { shared = false } = {}): Promise<Doc<"lists">[]> {
  const user = ctx.auth.userId();
  if (user === null) return [];
  const own = shared
    ? []
    : await ctx.db.query("lists").withIndex("by_owner_title", (q) => q.eq("owner", user)).take(
      LISTS_SHOWN_MAX,
    );
  const memberships = await ctx.db.query("members").withIndex("by_user", (q) => q.eq("user", user))
    .take(MEMBERS_MAX);
  const others = await Promise.all(memberships.map(({ list }) => ctx.db.get(list)));
  return [...own, ...others.filter((list) => list !== null)];
}

/** My lists and those I was let into, in alphabetical order; none for those who are not signed in. */
export const mine = query({
  args: {},
  handler: async (ctx) => {
    const user = ctx.auth.userId();
    const lists = await listsOf(ctx);
    return lists.map(({ _id, title, owner, invite }) => ({
      _id,
      title,
      isMine: owner === user,
      /** Whether others see it too. */
      isShared: owner !== user || invite !== undefined,
    })).sort((a, b) => a.title < b.title ? -1 : a.title > b.title ? 1 : 0);
  },
});

/** Adds a list, or returns the one with this title. */
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
    const { listsMax = LISTS_MAX } = (await ctx.db.get(owner))?.profile ?? {};
    const all = await lists.withIndex("by_owner_title", (q) => q.eq("owner", owner)).take(listsMax);
    if (all.length === listsMax) {
      throw new UserError("too_many", `You have ${listsMax} lists, which is the most`);
    }
    return await ctx.db.insert("lists", { owner, title });
  },
});

/** Removes a list with everything in it. */
export const remove = mutation({
  args: { list: id("lists") },
  handler: async (ctx, { list }) => {
    await ownList(ctx, list);
    await removeAttachmentsOfList(ctx, list);
    for await (const item of ctx.db.query("items").withIndex("by_list", (q) => q.eq("list", list))) {
      await ctx.db.delete(item._id);
    }
    const members = ctx.db.query("members").withIndex("by_list_user", (q) => q.eq("list", list));
    for await (const { _id } of members) await ctx.db.delete(_id);
    await ctx.db.delete(list);
  },
});
