/** Access checks: a list and its items are visible to the owner and the members. */
import { type Id, UserError } from "syncline/server";
import type { Doc, QueryCtx } from "./_generated.ts";

/** The signed-in user, or an error that says to sign in. */
export function requireUser(ctx: QueryCtx): Id<"_users"> {
  const userId = ctx.auth.userId();
  if (userId === null) throw new UserError("signed_out", "Sign in first");
  return userId;
}

/** A list the signed-in user owns or was let into; `null` for any other, as if it did not exist. */
export async function visibleList(ctx: QueryCtx, list: Id<"lists">): Promise<Doc<"lists"> | null> {
  const user = ctx.auth.userId();
  const found = user === null ? null : await ctx.db.get(list);
  if (user === null || found === null || found.owner === user) return found;
  const member = await ctx.db.query("members")
    .withIndex("by_list_user", (q) => q.eq("list", list).eq("user", user)).first();
  return member === null ? null : found;
}

/** A list the signed-in user may see and change. */
export async function sharedList(ctx: QueryCtx, list: Id<"lists">): Promise<Doc<"lists">> {
  const found = await visibleList(ctx, list);
  if (found === null) throw new UserError("no_list", "There is no such list");
  return found;
}

/** A list that belongs to the signed-in user. */
export async function ownList(ctx: QueryCtx, list: Id<"lists">): Promise<Doc<"lists">> {
  const found = await sharedList(ctx, list);
  if (found.owner !== requireUser(ctx)) {
    throw new UserError("not_owner", "Only the list's owner can do this");
  }
  return found;
}

/** An item of a list the signed-in user may see and change. */
export async function sharedItem(ctx: QueryCtx, item: Id<"items">): Promise<Doc<"items">> {
  const found = await ctx.db.get(item);
  if (found === null || await visibleList(ctx, found.list) === null) {
    throw new UserError("no_item", "There is no such item");
  }
  return found;
}
