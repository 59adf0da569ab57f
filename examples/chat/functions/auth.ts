/** Hook of new accounts: it gives each a unique name. */
import { authEventArgs } from "syncline/server";
import type { QueryCtx } from "./_generated.ts";
import { internalMutation } from "./schema.ts";

export const onUserCreated = internalMutation({
  args: authEventArgs,
  handler: async (ctx, { user }) => {
    const { name, email } = await ctx.db.get("_users", user) ?? {};
    const wanted = (name || email?.split("@")[0] || "Guest").trim().slice(0, 36);
    let free = wanted;
    for (let count = 2; await isTaken(ctx, free); count++) free = `${wanted} ${count}`;
    await ctx.db.insert("members", { user, name: free, key: free.toLowerCase() });
  },
});

async function isTaken(ctx: QueryCtx, name: string): Promise<boolean> {
  const key = name.toLowerCase();
  return await ctx.db.query("members").withIndex("by_key", (q) => q.eq("key", key)).first() !== null;
}
