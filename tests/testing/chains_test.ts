/** Calls on a `ctx` in another process: recorded here, done there. */
import assert from "node:assert/strict";
import { applyChain, decodeValue, encodeValue, recorder } from "../../mod/testing/remote/chains.ts";
import { createTestServer } from "syncline/test";
import {
  createApi,
  createFunctions,
  type DataModelOf,
  defineSchema,
  defineTable,
  type MutationCtx,
} from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  notes: defineTable({ text: z.string(), rank: z.number(), done: z.boolean().optional() }).index("by_rank", [
    "rank",
  ]),
});
const { query } = createFunctions(schema);
const app = {
  schema: { default: schema },
  notes: { all: query({ handler: (ctx) => ctx.db.query("notes").collect() }) },
};

/** A `ctx` like in another process: everything is serialized as JSON. */
function remote<Ctx>(ctx: Ctx): Ctx {
  return recorder([], async (chain, list) => {
    const value = applyChain(ctx, JSON.parse(JSON.stringify(chain)));
    const result = list ? await Array.fromAsync(value as AsyncIterable<unknown>) : await value;
    return decodeValue(JSON.parse(JSON.stringify(encodeValue(result))));
  }) as Ctx;
}

Deno.test("DV4 reads and writes, ranges and filters, loops and removed fields reach the database", async () => {
  await using server = await createTestServer({ modules: app });
  await server.run(async (local) => {
    const ctx: MutationCtx<DataModelOf<typeof schema>> = remote(local);
    const first = await ctx.db.insert("notes", { text: "a", rank: 1, done: true });
    await Promise.all([2, 3, 4].map((rank) => ctx.db.insert("notes", { text: `n${rank}`, rank })));
    await ctx.db.patch(first, { done: undefined });
    assert.deepEqual(Object.keys(await ctx.db.get(first) ?? {}).includes("done"), false);
    const between = ctx.db.query("notes").withIndex("by_rank", (q) => q.gt("rank", 1).lt("rank", 4));
    assert.deepEqual((await between.order("desc").collect()).map(({ rank }) => rank), [3, 2]);
    const filtered = ctx.db.query("notes").filter((q) =>
      q.or(q.eq(q.field("rank"), 4), q.eq(q.field("text"), "a"))
    );
    const seen: number[] = [];
    for await (const { rank } of filtered) seen.push(rank);
    assert.deepEqual(seen, [1, 4]);
    await assert.rejects(
      async () => void await ctx.db.insert("notes", { text: "", rank: "x" as never }),
      /rank/,
    );
  });
  assert.equal((await server.run((ctx) => ctx.db.query("notes").collect())).length, 4);
});

Deno.test("DV4 functions are called by reference, also from another process", async () => {
  await using server = await createTestServer({ modules: app });
  const { api } = createApi<Pick<typeof app, "notes">>();
  await server.run(async (local) => {
    const ctx: MutationCtx<DataModelOf<typeof schema>> = remote(local);
    await ctx.db.insert("notes", { text: "a", rank: 1 });
    assert.deepEqual((await ctx.runQuery(api.notes.all)).map(({ text }) => text), ["a"]);
  });
});
