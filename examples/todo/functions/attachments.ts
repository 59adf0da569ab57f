/**
 * Files of items. Pages get the metadata of a file with its item, and a signed link to its contents when they show it. The
 * link expires soon, so that former members and old links give no access. Serve this app with `--storage-private`, which
 * disables all other links.
 */
import { type Id, id, UserError } from "syncline/server";
import { sharedItem } from "./access.ts";
import type { Doc, MutationCtx, QueryCtx } from "./_generated.ts";
import { mutation, query } from "./schema.ts";

/** An item has at most this many files. */
const FILES_OF_ITEM_MAX = 10;
/** A list has at most this many files, so that it can be removed in one transaction. */
const FILES_OF_LIST_MAX = 500;
/** How long a link to a file works, in seconds. */
const LINK_SECONDS = 300;

/** Metadata that a page shows without reading the file. */
export type Attachment = Pick<Doc<"attachments">, "_id" | "name" | "contentType" | "size">;

/** The files of an item, in the order they were added. */
export async function attachmentsOf(ctx: QueryCtx, item: Id<"items">): Promise<Attachment[]> {
  const files = await ctx.db.query("attachments").withIndex("by_item", (q) => q.eq("item", item)).collect();
  return files.map(({ _id, name, contentType, size }) => ({ _id, name, contentType, size }));
}

/** Removes the files of an item that is removed itself. */
export async function removeAttachmentsOf(ctx: MutationCtx, item: Id<"items">): Promise<void> {
  for await (const file of ctx.db.query("attachments").withIndex("by_item", (q) => q.eq("item", item))) {
    await removeFile(ctx, file);
  }
}

/** Removes the files of all items of a list that is removed. */
export async function removeAttachmentsOfList(ctx: MutationCtx, list: Id<"lists">): Promise<void> {
  for await (const file of ctx.db.query("attachments").withIndex("by_list", (q) => q.eq("list", list))) {
    await removeFile(ctx, file);
  }
}

async function removeFile(ctx: MutationCtx, { _id, file }: Doc<"attachments">): Promise<void> {
  await ctx.storage.delete(file);
  await ctx.db.delete(_id);
}

async function isFull(ctx: QueryCtx, { _id, list }: Doc<"items">): Promise<boolean> {
  const files = ctx.db.query("attachments");
  const ofItem = await files.withIndex("by_item", (q) => q.eq("item", _id)).take(FILES_OF_ITEM_MAX);
  if (ofItem.length === FILES_OF_ITEM_MAX) return true;
  const ofList = await files.withIndex("by_list", (q) => q.eq("list", list)).take(FILES_OF_LIST_MAX);
  return ofList.length === FILES_OF_LIST_MAX;
}

/** Returns a URL to which the page uploads a file for an item. */
export const uploadUrl = mutation({
  args: { item: id("items") },
  handler: async (ctx, { item }): Promise<string> => {
    if (await isFull(ctx, await sharedItem(ctx, item))) {
      throw new UserError(
        "too_many",
        `An item has at most ${FILES_OF_ITEM_MAX} files, a list ${FILES_OF_LIST_MAX}`,
      );
    }
    return await ctx.storage.generateUploadUrl();
  },
});

/**
 * Attaches a file that the signed-in user has just uploaded, and returns whether it could: when the item has become full in
 * the meantime, the file is deleted. Files of other users or other items are rejected.
 */
export const add = mutation({
  args: { item: id("items"), file: id("_storage") },
  handler: async (ctx, { item, file }): Promise<boolean> => {
    const found = await sharedItem(ctx, item);
    const known = await ctx.storage.getMetadata(file);
    const attached = await ctx.db.query("attachments").withIndex("by_file", (q) => q.eq("file", file))
      .first();
    if (known === null || known.createdBy !== ctx.auth.userId() || attached !== null) {
      throw new UserError("no_file", "There is no such file");
    }
    if (await isFull(ctx, found)) {
      await ctx.storage.delete(file);
      return false;
    }
    await ctx.db.insert("attachments", {
      item,
      list: found.list,
      file,
      name: known.name ?? "file",
      contentType: known.contentType ?? "application/octet-stream",
      size: known.size,
    });
    return true;
  },
});

async function sharedAttachment(ctx: QueryCtx, attachment: Id<"attachments">): Promise<Doc<"attachments">> {
  const found = await ctx.db.get(attachment);
  if (found === null) throw new UserError("no_file", "There is no such file");
  await sharedItem(ctx, found.item);
  return found;
}

/** A link to a file's contents that works for a few minutes. `client.fileUrl` adds the size of a thumbnail. */
export const link = query({
  args: { attachment: id("attachments") },
  handler: async (ctx, { attachment }): Promise<string | null> => {
    const { file } = await sharedAttachment(ctx, attachment);
    return await ctx.storage.getSignedUrl(file, { ttlSeconds: LINK_SECONDS });
  },
});

/** Removes a file from its item. */
export const remove = mutation({
  args: { attachment: id("attachments") },
  handler: async (ctx, { attachment }): Promise<void> => {
    await removeFile(ctx, await sharedAttachment(ctx, attachment));
  },
});
