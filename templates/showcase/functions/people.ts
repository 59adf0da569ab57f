/** Helpers about users. */
import { type Id, UserError } from "syncline/server";
import type { QueryCtx } from "./schema.ts";

/** Returns the calling user. Clients can call every function that is not internal, so each one checks. */
export function signedIn(ctx: QueryCtx): Id<"_users"> {
  const user = ctx.auth.userId();
  if (user === null) throw new UserError("signed_out", "Sign in first");
  return user;
}

export async function nameOf(ctx: QueryCtx, user: Id<"_users">): Promise<string> {
  const { name, email } = await ctx.db.get("_users", user) ?? {};
  return name || email?.split("@")[0] || "Someone";
}
