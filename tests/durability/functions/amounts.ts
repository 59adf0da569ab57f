/** Two amounts with a constant sum. A separate query reads each of them. */
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";

const name = z.enum(["a", "b"]);

/** Creates both amounts. */
export const create = untypedMutation({
  args: { sum: z.int() },
  handler: async (ctx, { sum }) => {
    await ctx.db.insert("amounts", { name: "a", amount: sum });
    await ctx.db.insert("amounts", { name: "b", amount: 0 });
    return null;
  },
});

/** Moves `by` from `a` to `b`. */
export const move = untypedMutation({
  args: { by: z.int() },
  handler: async (ctx, { by }) => {
    for (const [name, change] of [["a", -by], ["b", by]] as const) {
      const found = await ctx.db.query("amounts").withIndex("by_name", (q) => q.eq("name", name)).unique();
      if (found === null) throw new Error(`There is no amount ${name}`);
      await ctx.db.patch(found._id, { amount: found.amount + change });
    }
    return null;
  },
});

/** Returns one of the amounts. */
export const get = untypedQuery({
  args: { name },
  handler: async (ctx, { name }) =>
    (await ctx.db.query("amounts").withIndex("by_name", (q) => q.eq("name", name)).unique())?.amount ?? null,
});

/** Iterations of a loop that takes several times as long as a query may before other readers take over. */
const SLOW_TURNS = 30_000_000;

/** Returns both amounts slowly, so that other readers run the queued queries. */
export const slowly = untypedQuery({
  args: {},
  handler: async (ctx) => {
    const [a, b] = await ctx.db.query("amounts").withIndex("by_name").collect();
    let turned = 0;
    for (let turn = 0; turn < SLOW_TURNS; turn++) turned = (turned + turn) % 7;
    return { a: a?.amount, b: b?.amount, turned };
  },
});
