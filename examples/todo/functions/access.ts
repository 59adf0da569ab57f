/** Who may see what: everything belongs to the signed-in user. */
import { type Id, UserError } from "syncline/server";
import type { Ctx, Doc } from "./schema.ts";

/** The signed-in user, or an error that says to sign in. */
export function requireUser(ctx: Ctx): Id<"_users"> {
  const userId = ctx.auth.userId();
  if (userId === null) throw new UserError("signed_out", "Sign in first");
  return userId;
}

/** A list of the signed-in user; a list of somebody else is as if it did not exist. */
export async function ownList(ctx: Ctx, list: Id<"lists">): Promise<Doc<"lists">> {
  const found = await ctx.db.get(list);
  if (found === null || found.owner !== requireUser(ctx)) {
    throw new UserError("no_list", "There is no such list");
  }
  return found;
}

/** An item of the signed-in user. */
export async function ownItem(ctx: Ctx, item: Id<"items">): Promise<Doc<"items">> {
  const found = await ctx.db.get(item);
  if (found === null || found.owner !== requireUser(ctx)) {
    throw new UserError("no_item", "There is no such item");
  }
  return found;
}
