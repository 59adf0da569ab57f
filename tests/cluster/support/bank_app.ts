/** An app whose balances have a constant sum, and which records each transfer once. */
export const ACCOUNTS = 8;
export const BALANCE = 100;
/** Transfers of a client that one call of `bank:ledger` lists. */
export const LEDGER_ROWS = 2_000;

export const bankApp = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({
  accounts: defineTable({ number: z.number(), balance: z.number() }).index("by_number", ["number"]),
  ledger: defineTable({ client: z.string(), n: z.number() }).index("by_client", ["client", "n"]),
  counters: defineTable({ done: z.number() }),
});
`,
  "bank.ts": `
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const open = untypedMutation({ args: { accounts: z.number() }, handler: async (ctx, { accounts }) => {
  if (await ctx.db.query("counters").first() !== null) return;
  for (let number = 0; number < accounts; number++) {
    await ctx.db.insert("accounts", { number, balance: ${BALANCE} });
  }
  await ctx.db.insert("counters", { done: 0 });
} });
export const transfer = untypedMutation({
  args: { client: z.string(), n: z.number(), from: z.number(), to: z.number() },
  handler: async (ctx, { client, n, from, to }) => {
    const account = (number) => ctx.db.query("accounts").withIndex("by_number", (q) => q.eq("number", number)).unique();
    const [giver, taker] = [await account(from), await account(to)];
    await ctx.db.patch(giver._id, { balance: giver.balance - 1 });
    await ctx.db.patch(taker._id, { balance: taker.balance + 1 });
    const counter = await ctx.db.query("counters").first();
    await ctx.db.patch(counter._id, { done: counter.done + 1 });
    await ctx.db.insert("ledger", { client, n });
    return null;
  },
});
export const look = untypedQuery({ args: {}, handler: async (ctx) => ({
  total: (await ctx.db.query("accounts").collect()).reduce((sum, { balance }) => sum + balance, 0),
  done: (await ctx.db.query("counters").first())?.done ?? 0,
}) });
export const ledger = untypedQuery({ args: { client: z.string(), from: z.number() }, handler: async (ctx, { client, from }) => {
  const rows = ctx.db.query("ledger").withIndex("by_client", (q) => q.eq("client", client).gte("n", from));
  return (await rows.take(${LEDGER_ROWS})).map(({ n }) => n);
} });
`,
};
