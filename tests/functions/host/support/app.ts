/** The app of the host's tests: numbered notes, and misbehaving functions. */

export const app: Record<string, string> = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({
  notes: defineTable({ n: z.number() }).index("by_n", ["n"]),
});
`,
  "notes.ts": `
import { untypedAction, untypedInternalMutation, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";

export const add = untypedMutation({
  args: { n: z.number() },
  handler: async (ctx, { n }) => {
    await ctx.db.insert("notes", { n });
    return n;
  },
});
export const clear = untypedMutation({
  args: {},
  handler: async (ctx) => {
    for (const { _id } of await ctx.db.query("notes").collect()) await ctx.db.delete(_id);
  },
});
export const secret = untypedInternalMutation({ args: {}, handler: () => "secret" });
export const all = untypedQuery({
  args: {},
  handler: async (ctx) => (await ctx.db.query("notes").withIndex("by_n").collect()).map(({ n }) => n),
});
export const count = untypedQuery({
  args: {},
  handler: async (ctx) => (await ctx.db.query("notes").collect()).length,
});
export const padded = untypedQuery({
  args: {},
  handler: async (ctx) => (await ctx.db.query("notes").collect()).map(({ n }) => String(n).padEnd(80_000)),
});
export const addTwice = untypedAction({
  args: { n: z.number() },
  handler: async (ctx, { n }) => {
    await ctx.runMutation("notes:add", { n });
    await ctx.runMutation("notes:add", { n: n + 0.5 });
    ctx.log.info("added");
    return { all: await ctx.runQuery("notes:all", {}), greeting: ctx.env.GREETING };
  },
});
export const nested = untypedAction({
  args: { n: z.number() },
  handler: async (ctx, { n }) => n === 0 ? 0 : 1 + (await ctx.runAction("notes:nested", { n: n - 1 })),
});
export const wait = untypedAction({
  args: { ms: z.number() },
  handler: (_ctx, { ms }) => new Promise((resolve) => setTimeout(() => resolve(ms), ms)),
});
export const spin = untypedQuery({
  args: { turns: z.number() },
  handler: (_ctx, { turns }) => {
    let turned = 0;
    for (let turn = 0; turn < turns; turn++) turned = (turned + turn) % 7;
    return turned;
  },
});
`,
  "bad.ts": `
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";

const hoard = (build: (i: number) => unknown) => {
  const kept: unknown[] = [];
  for (let i = 0;; i++) kept.push(build(i));
};
const doings = {
  "endless loop": () => { for (;;); },
  "endless microtasks": async () => { for (;;) await null; },
  "microtasks left behind": () => { (async () => { for (;;) await null; })(); return "done"; },
  "heap bomb": () => hoard((i) => new Array(1_000).fill(i)),
  "touched buffers": () => hoard(() => new Uint8Array(64 << 20).fill(1)),
  "one huge buffer": () => new Uint8Array(4 * 2 ** 30).fill(1).length,
  "exit": () => (Deno as unknown as { exit(code: number): void }).exit(0),
  "never settles": () => new Promise(() => {}),
  "deep recursion": () => { const f = (): number => 1 + f(); return f(); },
};
const args = { what: z.string() };
const handler = (_ctx: unknown, { what }: { what: string }) => {
  return (doings as Record<string, () => unknown>)[what]?.() as never;
};
// Two of each, because known durations do not apply to the other function.
export const change = untypedMutation({ args, handler });
export const changeWithKey = untypedMutation({ args, handler });
export const read = untypedQuery({ args, handler });
export const act = untypedAction({ args, handler });
`,
};
