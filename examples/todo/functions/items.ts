/** The items of a list: in pages, by words, and changed one by one. */
import { id, UserError } from "syncline/server";
import { z } from "zod";
import { sharedItem, sharedList, visibleList } from "./access.ts";
import { type Attachment, attachmentsOf, removeAttachmentsOf } from "./attachments.ts";
import { ITEMS_MAX, listsOf } from "./lists.ts";
import type { Doc, QueryCtx } from "./_generated.ts";
import { mutation, query } from "./schema.ts";

const text = z.string().max(500);
/** Items a search finds at most. */
const FOUND_MAX = 20;

/** Items with what pages show of their files. */
async function withFiles(
  ctx: QueryCtx,
  items: Doc<"items">[],
): Promise<(Doc<"items"> & { files: Attachment[] })[]> {
  return await Promise.all(
    items.map(async (item) => ({ ...item, files: await attachmentsOf(ctx, item._id) })),
  );
}

/**
 * A page of a list, newest first. `endCursor` pins the end of a page that is followed by another one, so that pages shown
 * together neither lose nor repeat an item while items come and go.
 */
export const page = query({
  args: {
    list: id("lists"),
    show: z.enum(["all", "open", "done"]),
    cursor: z.string().nullable(),
    endCursor: z.string().nullable().default(null),
    numItems: z.int().min(1).max(100).default(20),
  },
  handler: async (ctx, { list, show, ...pagination }) => {
    await sharedList(ctx, list);
    const items = ctx.db.query("items");
    const chosen = show === "all"
      ? items.withIndex("by_list", (q) => q.eq("list", list))
      : items.withIndex("by_list_status", (q) => q.eq("list", list).eq("status.kind", show));
    const result = await chosen.order("desc").paginate(pagination);
    return { ...result, page: await withFiles(ctx, result.page) };
  },
});

/**
 * Items with these words, the best match first; the last word may be the beginning of one. My own lists come before those
 * I was let into.
 */
export const search = query({
  args: { text: z.string().max(200) },
  handler: async (ctx, { text }) => {
    const user = ctx.auth.userId();
    if (user === null || text.trim() === "") return [];
    const items = ctx.db.query("items");
    const found = await items.withSearchIndex("by_text", (q) => q.search("text", text).eq("owner", user))
      .take(FOUND_MAX);
    for (const { _id } of await listsOf(ctx, { shared: true })) {
      if (found.length === FOUND_MAX) break;
      found.push(
        ...await items.withSearchIndex("by_text", (q) => q.search("text", text).eq("list", _id))
          .take(FOUND_MAX - found.length),
      );
    }
    return await withFiles(ctx, found);
  },
});

/** Adds an item and returns its id. */
export const add = mutation({
  args: { list: id("lists"), text, due: z.iso.date().optional() },
  handler: async (ctx, { list, due, ...args }) => {
    const { owner } = await sharedList(ctx, list);
    const text = args.text.trim();
    if (text === "") throw new UserError("empty_item", "Write what there is to do", { field: "text" });
    const items = await ctx.db.query("items").withIndex("by_list", (q) => q.eq("list", list)).count();
    if (items >= ITEMS_MAX) {
      throw new UserError("too_many", `A list has at most ${ITEMS_MAX} items`);
    }
    return await ctx.db.insert("items", { list, owner, text, status: { kind: "open" }, due });
  },
});

/** Marks an item done, or open again. */
export const setDone = mutation({
  args: { item: id("items"), done: z.boolean() },
  handler: async (ctx, { item, done }) => {
    const { status } = await sharedItem(ctx, item);
    if ((status.kind === "done") === done) return;
    await ctx.db.patch(item, { status: done ? { kind: "done", at: Date.now() } : { kind: "open" } });
  },
});

/** Changes the text of an item. */
export const edit = mutation({
  args: { item: id("items"), text },
  handler: async (ctx, args) => {
    await sharedItem(ctx, args.item);
    const text = args.text.trim();
    if (text === "") throw new UserError("empty_item", "Write what there is to do", { field: "text" });
    await ctx.db.patch(args.item, { text });
  },
});

/** Removes an item. */
export const remove = mutation({
  args: { item: id("items") },
  handler: async (ctx, { item }) => {
    await sharedItem(ctx, item);
    await removeAttachmentsOf(ctx, item);
    await ctx.db.delete(item);
  },
});

/** The number of open items of a list. */
export const openCount = query({
  args: { list: id("lists") },
  handler: async (ctx, { list }) => {
    // A list that was removed or is no longer shared with the caller is not an error.
    if (await visibleList(ctx, list) === null) return 0;
    return await ctx.db.aggregate("items", "by_state", (q) => q.eq("list", list).eq("status.kind", "open"))
      .count();
  },
});
