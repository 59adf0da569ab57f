/** Who is there: accounts, and guests who say their name. */
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

/** Who speaks: the signed-in person, or a guest of this name. Throws `no_name` for a guest without one. */
export async function speaker(ctx: QueryCtx, guestName: string): Promise<Person> {
  const person = await signedIn(ctx);
  if (person !== null) return person;
  const name = guestName.trim();
  if (name === "") throw new UserError("no_name", "Tell the others your name first", { field: "name" });
  return { name };
}

async function signedIn(ctx: QueryCtx): Promise<Person | null> {
  const userId = ctx.auth.userId();
  if (userId === null) return null;
  const member = await ctx.db.query("members").withIndex("by_user", (q) => q.eq("user", userId)).first();
  const name = member?.name || (await ctx.db.get("_users", userId))?.name || "Somebody";
  return { name, author: userId };
}
