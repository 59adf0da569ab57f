/** People in the chat: signed-in users, and guests with a name. */
import { type Id, UserError } from "syncline/server";
import type { QueryCtx } from "./_generated.ts";
import { query } from "./schema.ts";

/** A person as others see them. */
export interface Person {
  readonly name: string;
  /** Guests have none. */
  readonly author?: Id<"_users">;
}

/** The signed-in person, or `null`. */
export const me = query({
  args: {},
  handler: async (ctx): Promise<Person | null> => await signedIn(ctx),
});

/** Returns the author of a message: the signed-in person, or a guest. Throws `no_name` for a guest without a name. */
export async function speaker(ctx: QueryCtx, guestName: string): Promise<Person> {
  const person = await signedIn(ctx);
  if (person !== null) return person;
  const name = guestName.trim();
  if (name === "") throw new UserError("no_name", "Enter your name first", { field: "name" });
  return { name };
}

/** Returns the signed-in person, or `null`. */
export async function signedIn(ctx: QueryCtx): Promise<Person | null> {
  const userId = ctx.auth.userId();
  if (userId === null) return null;
  const member = await ctx.db.query("members").withIndex("by_user", (q) => q.eq("user", userId)).first();
  const name = member?.name || (await ctx.db.get("_users", userId))?.name || "Guest";
  return { name, author: userId };
}
